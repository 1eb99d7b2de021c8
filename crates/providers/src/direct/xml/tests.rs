//! However the text is cut, the same comes out, and nobody sees half a tag.

use super::{Bit, Reader, flattened, instructions};
use crate::direct::{
    conversation::{Answered, Block, Call, Content, Message},
    wire::Offer,
};
use serde_json::{Map, json};

/// Neighbouring texts joined: how a text is cut is not what is compared.
fn read(pieces: &[&str]) -> Vec<Bit> {
    let (mut reader, mut bits) = (Reader::default(), Vec::new());
    for piece in pieces {
        let mut some = Vec::new();
        reader.push(piece, &mut some);
        for bit in &some {
            if let Bit::Text(text) = bit {
                assert!(!text.contains("<invoke name") && !text.contains("</invoke>"), "{text:?} was shown");
            }
        }
        bits.append(&mut some);
    }
    reader.end(&mut bits);
    joined(bits)
}

fn joined(bits: Vec<Bit>) -> Vec<Bit> {
    let mut all: Vec<Bit> = Vec::new();
    for bit in bits {
        match (all.last_mut(), bit) {
            (Some(Bit::Text(last)), Bit::Text(text)) => last.push_str(&text),
            (_, bit) => all.push(bit),
        }
    }
    all
}

fn call(name: &str, parameters: &[(&str, &str)]) -> Bit {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Bit::Call { name: name.into(), parameters: parameters.iter().map(owned).collect() }
}

const TWO: &str = "Grüße, a < b.\n<function_calls>\n<invoke name=\"mcp__files__read\">\n<parameter name=\"path\">a<b>.txt</parameter>\n\
                   <parameter name='lines'>[1, 2]</parameter>\n</invoke> <invoke name=\"now\"></invoke>\n</function_calls> And so on <f";

#[test]
fn text_and_calls() {
    let expected = [
        Bit::Text("Grüße, a < b.\n".into()),
        call("mcp__files__read", &[("path", "a<b>.txt"), ("lines", "[1, 2]")]),
        call("now", &[]),
        Bit::Text(" And so on <f".into()),
    ];
    assert_eq!(read(&[TWO]), expected);
}

const MORE: &[&str] = &[
    TWO,
    "no tags at all",
    "the words <function_calls> alone are text, and <function_calls>\n are too",
    "<function_calls>\n<invoke name=\"a\"><parameter name=\"x\">1</parameter><parameter name=\"x\">2</parameter></invoke>",
    "<function_calls><invoke nam=\"a\"></invoke><invoke name=\"b\"></invoke></function_calls>",
    "<function_calls><invoke name=\"a\">words</invoke><invoke name=\"b\"></invoke></function_calls>x",
    "<function_calls><invoke name=\"a\"><parameter name=\"x\">never closed",
    "<function_calls><invoke name=\"a\"",
    "<function_calls><invoke name=\"a\"><parameter>1</parameter></invoke> junk é <invoke name=\"b\"></invoke>",
    "<function_calls><invoke name=\"a\"></invoke> junk that never ends, < or > or </function_cal",
    "half <function_ca",
    "<<function_calls><invoke name=\"a\"></invoke></function_calls><function_calls> <invoke name=\"b\"></invoke>",
    "<function_calls><invoked name=\"a\"></invoked></function_calls>",
];

#[test]
fn every_split_gives_the_same() {
    for text in MORE {
        let whole = read(&[text]);
        let cuts: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for (at, &first) in cuts.iter().enumerate() {
            for &second in &cuts[at..] {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(shape(&read(&pieces)), shape(&whole), "{pieces:?}");
            }
        }
        let letters: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        assert_eq!(shape(&read(&letters)), shape(&whole), "{text:?} letter by letter");
    }
}

/// What of a malformed call is kept for the model depends on how much of it had come.
fn shape(bits: &[Bit]) -> Vec<Bit> {
    let shape = |bit: &Bit| match bit {
        Bit::Malformed { name, reason, .. } => Bit::Malformed { name: name.clone(), reason, raw: String::new() },
        other => other.clone(),
    };
    bits.iter().map(shape).collect()
}

#[test]
fn what_is_malformed_says_why_and_does_not_hide_what_follows() {
    let bits = read(&[MORE[4]]);
    assert!(matches!(&bits[0], Bit::Malformed { reason, .. } if reason.contains("name")), "{bits:?}");
    assert_eq!(bits[1], call("b", &[]));
    let bits = read(&[MORE[6]]);
    assert!(
        matches!(&bits[0], Bit::Malformed { name, reason, raw } if name == "a" && reason.contains("breaks off") && raw.contains("never closed"))
    );
    assert_eq!(
        read(&[MORE[3]]),
        [call("a", &[("x", "2")])],
        "no end of the block is needed, and the last value counts"
    );
    assert_eq!(read(&["a ", "<"]), [Bit::Text("a <".into())]);
}

#[test]
fn a_flood_costs_no_more_than_its_bytes() {
    let mut reader = Reader::default();
    let mut bits = Vec::new();
    reader.push("<function_calls><invoke name=\"a\"><parameter name=\"x\">", &mut bits);
    let start = std::time::Instant::now();
    for _ in 0..200_000 {
        reader.push("0123456789", &mut bits);
    }
    reader.push("</parameter></invoke>", &mut bits);
    assert!(matches!(&bits[..], [Bit::Call { parameters, .. }] if parameters[0].1.len() == 2_000_000));
    assert!(start.elapsed().as_secs() < 20, "every byte is looked at once");
}

#[test]
fn what_is_written_can_be_read() {
    let input = json!({"path": "a<b>.txt", "lines": [1, 2]});
    let input: Map<_, _> = input.as_object().unwrap().clone();
    let made = Call { id: "1".into(), name: "read".into(), input, malformed: None };
    let messages = [
        Message::Model(vec![Block::Text("So.".into()), Block::Call(made.clone()), Block::Call(made)]),
        Message::Results(vec![Answered {
            call: "1".into(),
            name: "read".into(),
            content: vec![Content::Text("x</output></result>".into())],
            is_error: false,
        }]),
    ];
    let flat = flattened(&messages);
    let Message::Model(blocks) = &flat[0] else { panic!() };
    let [Block::Text(text)] = &blocks[..] else { panic!("{blocks:?}") };
    let again = call("read", &[("lines", "[1,2]"), ("path", "a<b>.txt")]);
    assert_eq!(read(&[text]), [Bit::Text("So.\n".into()), again.clone(), again]);
    let Message::Person(told) = &flat[1] else { panic!() };
    assert_eq!(told[0].matches("</result>").count(), 1, "{}", told[0]);
    let offers = [Offer { name: "read".into(), description: "Reads.".into(), schema: json!({}) }];
    assert!(instructions(&offers).contains("\"name\":\"read\"") && instructions(&[]).is_empty());
}
