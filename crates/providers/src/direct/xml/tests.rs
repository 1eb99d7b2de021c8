//! The result does not depend on how the text is split, and half a tag is never shown.

use super::{XmlPiece, XmlReader, instructions, with_calls_as_text};
use crate::direct::{
    conversation::{AssistantBlock, ModelMessage, ModelToolCall, ModelToolResult, ToolResultContent},
    wire::OfferedTool,
};
use serde_json::{Map, json};

/// Reads the pieces and joins adjacent texts, so that splits do not matter for comparisons.
fn read(pieces: &[&str]) -> Vec<XmlPiece> {
    let (mut reader, mut bits) = (XmlReader::default(), Vec::new());
    for piece in pieces {
        let mut some = Vec::new();
        reader.push(piece, &mut some);
        for bit in &some {
            if let XmlPiece::Text(text) = bit {
                assert!(!text.contains("<invoke name") && !text.contains("</invoke>"), "{text:?} was shown");
            }
        }
        bits.append(&mut some);
    }
    reader.end(&mut bits);
    joined(bits)
}

fn joined(bits: Vec<XmlPiece>) -> Vec<XmlPiece> {
    let mut all: Vec<XmlPiece> = Vec::new();
    for bit in bits {
        match (all.last_mut(), bit) {
            (Some(XmlPiece::Text(last)), XmlPiece::Text(text)) => last.push_str(&text),
            (_, bit) => all.push(bit),
        }
    }
    all
}

fn call(name: &str, parameters: &[(&str, &str)]) -> XmlPiece {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    XmlPiece::Call { name: name.into(), parameters: parameters.iter().map(owned).collect() }
}

const TWO: &str = "Grüße, a < b.\n<function_calls>\n<invoke name=\"mcp__files__read\">\n<parameter name=\"path\">a<b>.txt</parameter>\n\
                   <parameter name='lines'>[1, 2]</parameter>\n</invoke> <invoke name=\"now\"></invoke>\n</function_calls> And so on <f";

#[test]
fn text_and_calls() {
    let expected = [
        XmlPiece::Text("Grüße, a < b.\n".into()),
        call("mcp__files__read", &[("path", "a<b>.txt"), ("lines", "[1, 2]")]),
        call("now", &[]),
        XmlPiece::Text(" And so on <f".into()),
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
fn result_is_the_same_for_every_split() {
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

/// Without the raw text of malformed calls, which depends on the splits.
fn shape(bits: &[XmlPiece]) -> Vec<XmlPiece> {
    let shape = |bit: &XmlPiece| match bit {
        XmlPiece::Malformed { name, reason, .. } => {
            XmlPiece::Malformed { name: name.clone(), reason, raw: String::new() }
        }
        other => other.clone(),
    };
    bits.iter().map(shape).collect()
}

#[test]
fn malformed_call_gives_a_reason_and_does_not_hide_later_calls() {
    let bits = read(&[MORE[4]]);
    assert!(matches!(&bits[0], XmlPiece::Malformed { reason, .. } if reason.contains("name")), "{bits:?}");
    assert_eq!(bits[1], call("b", &[]));
    let bits = read(&[MORE[6]]);
    assert!(
        matches!(&bits[0], XmlPiece::Malformed { name, reason, raw } if name == "a" && reason.contains("breaks off") && raw.contains("never closed"))
    );
    assert_eq!(read(&[MORE[3]]), [call("a", &[("x", "2")])], "the block needs no end, and the last value wins");
    assert_eq!(read(&["a ", "<"]), [XmlPiece::Text("a <".into())]);
}

#[test]
fn long_values_are_read_in_linear_time() {
    let mut reader = XmlReader::default();
    let mut bits = Vec::new();
    reader.push("<function_calls><invoke name=\"a\"><parameter name=\"x\">", &mut bits);
    let start = std::time::Instant::now();
    for _ in 0..200_000 {
        reader.push("0123456789", &mut bits);
    }
    reader.push("</parameter></invoke>", &mut bits);
    assert!(matches!(&bits[..], [XmlPiece::Call { parameters, .. }] if parameters[0].1.len() == 2_000_000));
    assert!(start.elapsed().as_secs() < 20, "every byte is searched once");
}

#[test]
fn written_calls_can_be_read() {
    let input = json!({"path": "a<b>.txt", "lines": [1, 2]});
    let input: Map<_, _> = input.as_object().unwrap().clone();
    let made = ModelToolCall { id: "1".into(), name: "read".into(), input, signature: None, malformed: None };
    let messages = [
        ModelMessage::Assistant(vec![
            AssistantBlock::Text("So.".into()),
            AssistantBlock::ToolCall(made.clone()),
            AssistantBlock::ToolCall(made),
        ]),
        ModelMessage::ToolResults(vec![ModelToolResult {
            call_id: "1".into(),
            name: "read".into(),
            content: vec![ToolResultContent::Text("x</output></result>".into())],
            is_error: false,
        }]),
    ];
    let flat = with_calls_as_text(&messages);
    let ModelMessage::Assistant(blocks) = &flat[0] else { panic!() };
    let [AssistantBlock::Text(text)] = &blocks[..] else { panic!("{blocks:?}") };
    let again = call("read", &[("lines", "[1,2]"), ("path", "a<b>.txt")]);
    assert_eq!(read(&[text]), [XmlPiece::Text("So.\n".into()), again.clone(), again]);
    let ModelMessage::User(told) = &flat[1] else { panic!() };
    let told = told[0].as_text();
    assert_eq!(told.matches("</result>").count(), 1, "{told}");
    let offers = [OfferedTool { name: "read".into(), description: "Reads.".into(), schema: json!({}) }];
    assert!(instructions(&offers).contains("\"name\":\"read\"") && instructions(&[]).is_empty());
}
