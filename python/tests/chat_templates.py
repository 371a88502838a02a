"""Chat templates of the common kinds, conversations that are hard for them, and tokenizers with their special tokens."""

import random
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot|>", "[INST]", "[/INST]", "<turn>", "</turn>", "<|end|>"]

TEMPLATES = {
    "chatml": """{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
""",
    "llama2": """{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% set rest = messages[1:] %}
{%- else %}{% set system = false %}{% set rest = messages %}{% endif %}
{% for message in rest %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {% endif %}
    {% if loop.index0 == 0 and system != false %}
        {% set content = '<<SYS>>\n' + system + '\n<</SYS>>\n\n' + message['content'] %}
    {% else %}
        {% set content = message['content'] %}
    {% endif %}
    {% if message['role'] == 'user' %}
        {{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
    {% elif message['role'] == 'assistant' %}
        {{ ' ' + content.strip() + ' ' + eos_token }}
    {% endif %}
{% endfor %}""",
    "llama3": """{{- bos_token }}
{%- for message in messages %}
    {%- set content = '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content | trim + '<|eot|>' %}
    {{- content }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}
""",
    "mistral": """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}\
{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}\
{% elif message.role == 'system' %}{{ message.content ~ '\n\n' }}\
{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ messages[0].content | trim ~ '\n' }}{% endif -%}
{% for message in messages if message.role != 'system' %}
{%- if message['role'] == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif -%}
{{ '<turn>' + role + '\n' + message['content'] | trim + '</turn>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<turn>model\n' }}{% endif %}
""",
    "phi": """{% for message in messages %}{% if message['role'] in ['user', 'system'] and message['content'] %}
{{ '<|' ~ message['role'] ~ '|>\n' ~ message['content'] ~ '<|end|>\n' }}{% else -%}
{{ '<|assistant|>\n' ~ (message['content'] or 'nothing') ~ '<|end|>\n' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ '' }}{% endif %}""",
    "zephyr, generation": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n' }}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    "chatml, generation": """{%- for message in messages -%}
{{ '<|im_start|>' ~ message.role ~ '\n' }}
{%- if message.role == "assistant" -%}
  {%- generation -%}
  {{ message.content }}{{ '' if loop.last else ' ' }}<|im_end|>
  {%- endgeneration -%}
{%- else %}{{ message.content }}<|im_end|>{%- endif %}

{% endfor -%}""",
    "content alone is generated": """{# {% generation %} in a comment #}{% for message in messages %}{{ "{% generation %}" if false }}
{% if message.role == 'assistant' %}A:{% generation %}{{ message.content }}{% endgeneration %}|
{% else %}{{ message.role | upper }}:{{ message.content }}
{% endif %}{% endfor %}{% raw %}{% generation %}{% endraw %}""",
    "python's, generation": """{% for message in messages %}{{ '\\U0001f642\\/' ~ loop.index ~ 1e100 ~ none }}
  {% raw %}
 {{ raw }}
  {% endraw %}
{% for text in message.content.title(), message.content | title %}{{ text | indent(2, blank=true) | e }};{% endfor %}
{%- generation %}{{ [message.content, 1e16] | join('|' ~ 1 + 1 | string) }}{% filter indent(width=1) %}
{{ message.content }}
{% endfilter %}{% endgeneration %}{{ none is iterable }}{{ range(2) is sequence }}{{ nothing is sequence }}{% endfor %}""",
    "generation in loops": """{% set ns = namespace(n=0) %}{% for message in messages %}
{%- if message.role == 'system' %}{% continue %}{% endif %}
{%- if message.role == 'assistant' %}{% generation %}{% for part in message.content.split(' ') %}{{ part }}{{ ' ' if not loop.last }}
{%- set ns.n = ns.n + 1 %}{% endfor %}{% endgeneration %}{% generation %}{{ eos_token }}{% endgeneration %}
{%- else %}<|im_start|>{{ message.content }}{% endif %}
{%- endfor %}{{ ns.n }}""",
    "deepseek": """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}\
{% set ns = namespace(is_first=false, system='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}\
{%- set ns.system = ns.system + message['content'] %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system }}\
{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_first = true -%}{{ '<|User|>' + message['content'] }}{%- endif %}\
{%- if message['role'] == 'assistant' and message['content'] is not none %}{{ '<|Assistant|>' + message['content'] + eos_token }}{%- endif %}\
{%- endfor -%}{% if add_generation_prompt %}{{ '<|Assistant|>' }}{% endif %}""",
    "qwen, tools": """{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{%- endif %}
    {{- "# Tools\n\nYou may call one or more functions.\n\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if content %}{{- '\n' + content }}{%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '\n<tool_call>\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {{- tool_call.arguments if tool_call.arguments is string else tool_call.arguments | tojson }}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\n<tool_response>\n' + content + '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant' }}{%- endif %}
""",
    "command-r, generation, tools": """{{ bos_token }}{%- macro document(doc) %}
{{ doc.name }}: {{ doc | tojson(indent=2) }}{% for key, value in doc.items() %}

{{ loop.index }}. {{ key }} = {{ value }}{% endfor %}
{%- endmacro %}{% if tools is not none and tools is iterable and tools | length > 0 %}
## Tools{% for tool in tools %}{{ document(tool.function) }}{% endfor %}{% endif %}
{%- set loop_messages = messages | rejectattr('role', 'equalto', 'system') | list -%}
{%- for message in loop_messages -%}
<|im_start|>{{ {'user': 'USER', 'assistant': 'CHATBOT', 'tool': 'SYSTEM'}[message.role] }}
{%- if message.role == 'assistant' %}{% generation %}
{%- if message.tool_calls is defined and message.tool_calls %}Action: ```json
[
{% for call in message['tool_calls'] %}    {{ {"tool_name": call.function.name, "parameters": call.function.arguments} | tojson(indent=4) }}{% if not loop.last %},
{% endif %}
{% endfor %}
]```{% endif %}{{ message.content | default('', true) }}<|im_end|>{% endgeneration %}
{%- else %}{{ message.get('content', '') | replace('<|im_end|>', '') }}<|im_end|>{% endif %}
{%- endfor -%}""",
    "loop controls, dates": """{%- if strftime_now is defined %}{%- set today = strftime_now('%d %b %Y') %}{%- else %}{%- set today = '?' %}{%- endif %}
{{- bos_token + 'Today: ' + today + strftime_now(' %A, %Y-%m-%d %j') + '\n' }}
{%- for message in messages %}
{%- if message.role == 'tool' %}{% continue %}{% endif %}
{%- if loop.index > 9 %}{% break %}{% endif %}
{{- '[' ~ loop.index ~ '] ' ~ message.role.title() ~ ': ' ~ message.content.rstrip() ~ eos_token }}
{%- endfor %}""",
    "python strings, generation": """{%- for message in messages %}
{%- set lines = (message.content or '').splitlines() %}{%- set words = (message.content or '').split() %}
{{- message.role.capitalize() }} ({{ words | length }} words, {{ lines | length }} lines{{ ', ' ~ words[-1][::-1] if words }}) {{ message.content is sequence }} {{ true }} {{ none }}
{% generation %}{% if message.role == 'assistant' %}{{ message.content.lstrip().replace('a', 'A', 1) }}{{ message.content[:3] | upper }}
{%- if message.content.startswith('<') and not message.content.endswith('>') %}<{% endif %}{% endif %}{% endgeneration %}
{%- endfor %}""",
}

# Those whose conversations have tools, and calls of them.
WITH_TOOLS = {"qwen, tools", "command-r, generation, tools"}


def tokenizer_of(kind: str, corpus: list[str]) -> Tokenizer:
    """A small tokenizer: of bytes as GPT-2's and Qwen's, as Llama 3's with trimmed places, of characters as Llama 2's."""
    special = [AddedToken(token, special=True, normalized=False) for token in SPECIAL]
    if kind == "characters":
        tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
        trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=tokens, show_progress=False)
    else:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        if kind == "trimmed":
            tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True)])
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens(special)
    return tokenizer


def saved(kind: str, template: str, folder: Path) -> PreTrainedTokenizerFast:
    """The template as transformers has it, saved with the template and loaded again."""
    corpus = [text for seed in range(200) for text in [Conversations(seed).text()]] + list(TEMPLATES.values())
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer_of(kind, corpus), bos_token="<s>", eos_token="</s>", chat_template=template
    )
    tokenizer.save_pretrained(folder)
    return PreTrainedTokenizerFast.from_pretrained(folder)


class Conversations:
    """Conversations of a seed: languages, white space of all kinds, what looks like special tokens, nothing at all."""

    PARTS = ["hello ", "the quick brown fox", " a", "\n", "\n\n", "  ", "\t", "\r\n", "", "ä", "é", "日本語", "مرحبا", "👩‍👩‍👧", "🙂", "\u00a0",
             "\u2028", "\x1c", "\x85", "\ufeff", "\ue000", "\U000f0000", "\U000f0001", "\U0010fffd", "{{ messages }}", "{% generation %}",
             "{% endgeneration %}", "__generation()", "<|im_end|>", "</s>", "<s>", "[INST]", "[/INST]", "<|im_start|>assistant\n", "<<SYS>>",
             "</turn>", '"', "'", "\\", "\\n", "&amp;", "<b>", "0", "1234", "None", "x" * 40, "ﬁ", "İ", "ǅ", "e\u0301"]  # fmt: skip

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        return "".join(self.random.choices(self.PARTS, k=self.random.choice([0, 1, 2, 5, 12])))

    def value(self, depth: int = 0) -> object:
        """Anything that JSON holds."""
        simple = [None, True, False, 0, -7, 2**40, 2**64, -(2**63) - 1, 10**21, 0.5, 1e22, 1.5e-7, -0.0, 100.0, self.text()]
        if depth == 2 or self.random.random() < 0.6:
            return self.random.choice(simple)
        if self.random.random() < 0.5:
            return [self.value(depth + 1) for _ in range(self.random.randrange(3))]
        return {self.random.choice(["a", "city", "é", ""]): self.value(depth + 1) for _ in range(self.random.randrange(3))}

    def one(self, with_tools: bool) -> dict[str, object]:
        """A record with messages, and tools and calls of them where a template has them."""
        messages: list[dict[str, object]] = []
        if self.random.random() < 0.4:
            messages.append({"role": "system", "content": self.text()})
        for _ in range(self.random.choice([1, 1, 2, 3, 6])):
            messages.append({"role": "user", "content": self.text()})
            answer: dict[str, object] = {"role": "assistant", "content": self.text()}
            if with_tools and self.random.random() < 0.5:
                calls = [{"city": self.value(), "n": self.value()} for _ in range(self.random.choice([1, 2]))]
                call = [{"type": "function", "function": {"name": "weather", "arguments": call}} for call in calls]
                messages.append({"role": "assistant", "content": self.random.choice([None, "", self.text()]), "tool_calls": call})
                messages += [{"role": "tool", "content": self.text(), "name": "weather"} for _ in calls]
            messages.append(answer)
        if self.random.random() < 0.1:
            messages.append({"role": "user", "content": self.text()})
        record: dict[str, object] = {"messages": messages}
        if with_tools and self.random.random() < 0.7:
            parameters = {"type": "object", "properties": self.value(), "required": ["city"]}
            function = {"name": "weather", "description": self.text(), "parameters": parameters}
            record["tools"] = [{"type": "function", "function": function}] * self.random.choice([1, 2])
        return record
