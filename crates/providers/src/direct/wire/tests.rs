//! Bytes as vendors send them, split anywhere; bodies as vendors want them.

use super::{
    Api, Offer, Parser, Piece, Question, Stop, body,
    failure::{Failure, Kind},
    names::Names,
};
use crate::direct::conversation::{Answered, Block, Call, Content, Message};
use domain::{agent::Thinking, usage::Usage};
use serde_json::{Map, Value, json};

fn read(api: Api, pieces: &[&[u8]]) -> (Vec<Piece>, Result<(), Failure>, u32) {
    let (mut parser, mut read) = (Parser::new(api), Vec::new());
    for piece in pieces {
        if let Err(failure) = parser.push(piece, &mut read) {
            return (read, Err(failure), parser.skipped);
        }
    }
    let end = parser.end(&mut read);
    (read, end, parser.skipped)
}

/// However it is split, the same comes out.
fn everywhere(api: Api, text: &str) -> (Vec<Piece>, Result<(), Failure>, u32) {
    let bytes = text.as_bytes();
    let whole = read(api, &[bytes]);
    for at in 0..=bytes.len() {
        assert_eq!(read(api, &[&bytes[..at], &bytes[at..]]), whole, "split at {at}");
    }
    assert_eq!(read(api, &bytes.chunks(1).collect::<Vec<_>>()), whole);
    whole
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("x"))).collect()
}

#[test]
fn anthropic_thinking_tools_and_what_is_new() {
    let text = stream(&[
        json!({"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 9, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "grü"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "zzz"}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "server_tool_use", "id": "s"}}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "Hi"}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "citations_delta", "citation": {}}}),
        json!({"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}}}),
        json!({"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
        json!({"type": "content_block_stop", "index": 4}),
        json!({"type": "some_day", "index": 4}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}}),
        json!({"type": "message_stop"}),
    ]);
    let (pieces, end, skipped) = everywhere(Api::Messages, &text);
    let usage = |output_tokens| {
        Piece::Usage(Usage { input_tokens: 9, output_tokens, cache_read_tokens: 100, cache_write_tokens: 20 })
    };
    let expected = [
        Piece::Model("claude".into()),
        usage(1),
        Piece::Thinking { block: 0, delta: "grü".into() },
        Piece::Signature { block: 0, delta: "sig".into() },
        Piece::BlockEnds { block: 0 },
        Piece::Redacted { data: "zzz".into() },
        Piece::Text { block: 3, delta: "Hi".into() },
        Piece::CallBegins { block: 4, id: "t".into(), name: "look".into() },
        Piece::CallInput { block: 4, delta: "{}".into() },
        Piece::BlockEnds { block: 4 },
        usage(30),
        Piece::Stops(Stop::Tools),
        Piece::Done,
    ];
    assert_eq!((pieces.as_slice(), end, skipped), (&expected[..], Ok(()), 3));
}

#[test]
fn errors_and_ends_inside_of_a_stream() {
    let begun = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}});
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let (pieces, end, _) = everywhere(Api::Messages, &stream(&[begun.clone(), overloaded]));
    assert_eq!((pieces.len(), end.unwrap_err().kind), (1, Kind::Overloaded));
    let (_, end, _) = everywhere(Api::Messages, &stream(&[begun]));
    assert_eq!(end.unwrap_err().kind, Kind::Cut);
    let (_, end, _) = everywhere(Api::Chat, "data: {\"error\":{\"message\":\"boom\"}}\n\n");
    assert_eq!(end.unwrap_err().kind, Kind::Server);
    let (_, end, _) = everywhere(Api::Chat, "data: {not json}\n\n");
    assert_eq!(end.unwrap_err().kind, Kind::Garbled);
}

fn chunk(delta: Value, reason: Option<&str>) -> Value {
    json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

#[test]
fn chat_reasoning_interleaved_calls_and_usage_at_the_end() {
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let mut text = stream(&[
        chunk(json!({"role": "assistant", "content": ""}), None),
        chunk(json!({"reasoning_content": "hm"}), None),
        chunk(json!({"reasoning": "hm2"}), None),
        chunk(json!({"content": "Hi"}), None),
        chunk(json!({"tool_calls": [{"index": 0, "id": "a", "function": function("look", "")}]}), None),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"x\""}}]}), None),
        chunk(json!({"tool_calls": [{"index": 1, "id": "b", "function": function("see", "{}")}]}), None),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}), None),
        chunk(json!({}), Some("tool_calls")),
        json!({"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}}),
    ]);
    text.push_str("data: [DONE]\n\n");
    let (pieces, end, skipped) = everywhere(Api::Chat, &text);
    assert_eq!((end, skipped), (Ok(()), 0));
    let has = |piece: Piece| assert!(pieces.contains(&piece), "{piece:?} is not in {pieces:?}");
    has(Piece::Thinking { block: 0, delta: "hm2".into() });
    has(Piece::CallBegins { block: 2, id: "a".into(), name: "look".into() });
    has(Piece::CallInput { block: 2, delta: ":1}".into() });
    has(Piece::CallBegins { block: 3, id: "b".into(), name: "see".into() });
    has(Piece::Usage(Usage { input_tokens: 10, output_tokens: 7, cache_read_tokens: 40, cache_write_tokens: 0 }));
    assert_eq!(pieces.last(), Some(&Piece::Done));
}

#[test]
fn chat_as_local_servers_take_it() {
    // Every call with the number 0 and whole; arguments as an object; no mark at the end.
    let call = |id: &str| json!({"index": 0, "id": id, "function": {"name": "look", "arguments": {"id": id}}});
    let text = stream(&[chunk(json!({"tool_calls": [call("a"), call("b")]}), None), chunk(json!({}), Some("stop"))]);
    let (pieces, end, _) = everywhere(Api::Chat, &text);
    assert_eq!(end, Ok(()));
    let begun = pieces.iter().filter(|piece| matches!(piece, Piece::CallBegins { .. })).count();
    let ended = pieces.iter().filter(|piece| matches!(piece, Piece::BlockEnds { .. })).count();
    assert_eq!((begun, ended), (2, 2), "{pieces:?}");
}

fn question<'a>(messages: &'a [Message], tools: &'a [Offer], names: &'a Names) -> Question<'a> {
    Question {
        model: "m",
        system: "Be kind.",
        messages,
        tools,
        names,
        max_output_tokens: Some(100),
        thinking: None,
        thinking_budget_tokens: None,
        stop: &[],
        is_vendors_own: false,
    }
}

#[test]
fn bodies() {
    let call =
        Call { id: "t".into(), name: "a.b".into(), input: Map::from_iter([("x".into(), json!(1))]), malformed: None };
    let image = Content::Image { media_type: "image/png".into(), data: "AAAA".into() };
    let content = vec![Content::Text("seen".into()), image, Content::Text(" ".into())];
    let messages = [
        Message::Person(vec!["one".into(), " ".into()]),
        Message::Person(vec!["two".into()]),
        Message::Model(vec![Block::Thinking { text: "hm".into(), signature: "sig".into() }, Block::Call(call)]),
        Message::Results(vec![Answered { call: "t".into(), name: "a.b".into(), content, is_error: false }]),
    ];
    let tools = [Offer { name: "a.b".into(), description: "d".into(), schema: json!({"type": "object"}) }];
    let names = Names::new(["a.b"]);
    let made = body(Api::Messages, &Question { thinking: Some(Thinking::High), ..question(&messages, &tools, &names) });
    assert_eq!(made["messages"].as_array().unwrap().len(), 3, "neighbours are joined: {made}");
    assert_eq!(made["messages"][0]["content"].as_array().unwrap().len(), 2, "nothing empty is said");
    assert_eq!(made["messages"][1]["content"][0]["signature"], "sig");
    assert_eq!(made["messages"][1]["content"][1]["name"], made["tools"][0]["name"]);
    let result = &made["messages"][2]["content"][0];
    assert_eq!(
        (&result["content"][1]["source"]["data"], result["content"].as_array().unwrap().len()),
        (&json!("AAAA"), 2)
    );
    assert!(result["cache_control"].is_object() && made["system"][0]["cache_control"].is_object());
    assert_eq!((&made["thinking"]["type"], &made["output_config"]["effort"]), (&json!("adaptive"), &json!("high")));
    let fixed =
        body(Api::Messages, &Question { thinking_budget_tokens: Some(2000), ..question(&messages, &[], &names) });
    assert!(fixed["max_tokens"].as_u64().unwrap() > 2000 && fixed["thinking"]["budget_tokens"] == 2000);

    let made = body(Api::Chat, &question(&messages, &tools, &names));
    let roles: Vec<&str> = made["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(made["messages"][2]["tool_calls"][0]["function"]["arguments"], "{\"x\":1}");
    assert_eq!(made["messages"][4]["content"][1]["image_url"]["url"], "data:image/png;base64,AAAA");
    assert_eq!((&made["max_tokens"], &made["stream_options"]["include_usage"]), (&json!(100), &json!(true)));
    let own = body(Api::Chat, &Question { is_vendors_own: true, ..question(&messages, &tools, &names) });
    assert_eq!(own["max_completion_tokens"], 100);
}
