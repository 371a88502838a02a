//! Templates that come with windrow: the common ways to mark turns, each with what is learned of them.

/// The built-in templates.
pub const NAMES: &[&str] = &["chatml", "gemma", "llama3", "zephyr"];

const CHATML: &str = "\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- message.content + '<|im_end|>' -}}{%- endgeneration -%}
{%- else -%}
{{- message.content + '<|im_end|>' -}}
{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
";

const GEMMA: &str = "\
{{- bos_token -}}
{%- for message in messages -%}
{%- if message.role not in ['user', 'assistant'] -%}
{{- raise_exception('this template has no role ' + message.role) -}}
{%- endif -%}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- message.content | trim + '<end_of_turn>' -}}{%- endgeneration -%}
{%- else -%}
{{- message.content | trim + '<end_of_turn>' -}}
{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}
";

const LLAMA3: &str = "\
{{- '<|begin_of_text|>' -}}
{%- for message in messages -%}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- message.content | trim + '<|eot_id|>' -}}{%- endgeneration -%}
{%- else -%}
{{- message.content | trim + '<|eot_id|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}{%- endif -%}
";

const ZEPHYR: &str = "\
{%- for message in messages -%}
{{- '<|' + message.role + '|>\\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- message.content + eos_token -}}{%- endgeneration -%}
{%- else -%}
{{- message.content + eos_token -}}
{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}
";

/// The template of a name.
pub(crate) fn named(name: &str) -> Option<&'static str> {
    match name {
        "chatml" => Some(CHATML),
        "gemma" => Some(GEMMA),
        "llama3" => Some(LLAMA3),
        "zephyr" => Some(ZEPHYR),
        _ => None,
    }
}
