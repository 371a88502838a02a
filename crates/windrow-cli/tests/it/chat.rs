//! Conversations as tokens with a loss mask: as they are typed, read again, and refused.

use serde_json::json;

use crate::program::Desk;

const CHAT: &str = r#"{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}, {"from": "human", "value": "c"}]}
"#;
const TEMPLATE: &str = "{% for m in messages %}{{ m.role[0] }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}.\
    {% endgeneration %}{% else %}{{ m.content }}.{% endif %}{% endfor %}";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("chat.jsonl", CHAT);
    desk.write("t.jinja", TEMPLATE);
    desk
}

const TYPED: &str = "tokenize chat.jsonl --tokenizer bytes --chat --chat-template t.jinja --out out";

#[test]
fn each_conversation_is_a_record_with_a_mask_or_part_of_samples() {
    let desk = desk();
    let said = desk.windrow(TYPED).done();
    assert!(said.starts_with("out: 22 tokens of 2 documents in 2 records; "), "{said}");
    assert!(desk.windrow(TYPED).done().contains("was there already"));
    let info = desk.windrow("inspect out --json").json();
    assert_eq!((&info["info"]["records"], &info["info"]["tracks"]), (&json!(2), &json!(["loss_mask"])));
    assert_eq!(desk.windrow("verify out --json").json()["findings"]["problems"], json!([]));

    let ds = windrow::open(desk.path("out")).unwrap();
    let mut loader = ds.records(12).unwrap().loader().batch_size(2).build().unwrap();
    let batch = loader.next_batch().unwrap().unwrap();
    let labels = |row: usize| -> String {
        let masks = &batch.get::<i32>("loss_masks").unwrap()[row * 12..][..12];
        let ids = &batch.get::<i64>("labels").unwrap()[row * 12..][..12];
        let learned = ids.iter().zip(masks).filter(|(_, mask)| **mask == 1);
        learned.map(|(id, _)| char::from(u8::try_from(*id).unwrap())).collect()
    };
    let mut learned = [labels(0), labels(1)];
    learned.sort();
    assert_eq!(learned, ["b.", "ho."]);

    desk.windrow(&TYPED.replace("--out out", "--out packed --sample-size 8 --remainder pad")).done();
    let info = desk.windrow("inspect packed --json").json();
    assert_eq!((&info["info"]["records"], &info["info"]["values"]), (&json!(3), &json!(24)));
}

#[test]
fn a_mask_is_taken_from_its_field() {
    let desk = Desk::new();
    desk.write(
        "ids.jsonl",
        "{\"ids\": [104, 105, 33], \"mask\": [0, 1, 1]}\n{\"ids\": [104, 111], \"mask\": [0, 1]}\n",
    );
    let typed = "tokenize ids.jsonl --tokenizer bytes --text-field ids --mask-field mask --out out";
    desk.windrow(typed).done();
    let ds = windrow::open(desk.path("out")).unwrap();
    let mut loader = ds.records(3).unwrap().loader().batch_size(2).shuffle(false).build().unwrap();
    let batch = loader.next_batch().unwrap().unwrap();
    // What the label beside each is: `i` and `!`, `o`, and two of padding.
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [1, 1, 0, 1, 0, 0]);

    desk.write("ids.jsonl", "{\"ids\": [104, 105, 33], \"mask\": [0, 1]}\n");
    let said = desk.windrow(&typed.replace("--out out", "--out other")).failed(3);
    assert!(said.contains("ids.jsonl (record 0"), "{said}");
}

#[test]
fn another_template_is_another_output() {
    let desk = desk();
    desk.windrow(TYPED).done();
    desk.write("t.jinja", format!("{TEMPLATE}!"));
    let said = desk.windrow(TYPED).failed(1);
    assert!(said.contains("--overwrite"), "{said}");
    desk.windrow(&format!("{TYPED} --overwrite")).done();
}

#[test]
fn what_cannot_be_is_said_with_its_place() {
    let desk = desk();
    for (typed, code, says) in [
        (format!("{TYPED} --to tokens"), 2, "no place for a loss_mask"),
        (format!("{TYPED} --eos 3"), 2, "eos is set, but a conversation is what its template says"),
        (format!("{TYPED} --messages-field turns"), 3, "no field \"turns\" with a conversation"),
        (TYPED.replace("--chat ", ""), 2, "is set, but the records are not conversations"),
        (TYPED.replace("t.jinja", "none.jinja"), 1, "no chat template of this name or at this path"),
        (TYPED.replace("--chat-template t.jinja", ""), 1, "the tokenizer has no chat template"),
        (TYPED.replacen("tokenize", "prep plan tokenize", 1), 2, "parts hold no arrays beside the tokens"),
    ] {
        let said = desk.windrow(&typed).failed(code);
        assert!(said.contains(says), "{typed}: {said}");
    }
    desk.write("t.jinja", "{{ messages | length }}{{ raise_exception('no') if messages | length == 3 }}");
    let said = desk.windrow(TYPED).failed(1);
    assert!(said.contains("chat.jsonl (record 0, byte 0)") && said.contains("message 1"), "{said}");
}
