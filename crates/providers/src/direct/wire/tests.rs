//! Streams of the vendors, split at every byte; request bodies of the vendors.

use super::{
    AnswerParser, AnswerPiece, ModelApiKind, ModelRequest, ModelStopReason, OfferedTool, body,
    failure::{ModelFailure, ModelFailureKind},
    names::ToolNames,
};
use crate::direct::conversation::{AssistantBlock, ModelMessage, ModelToolCall, ModelToolResult, ToolResultContent};
use domain::{agent::Thinking, usage::Usage};
use serde_json::{Map, Value, json};

fn read(api: ModelApiKind, pieces: &[&[u8]]) -> (Vec<AnswerPiece>, Result<(), ModelFailure>, u32) {
    let (mut parser, mut read) = (AnswerParser::new(api, false), Vec::new());
    for piece in pieces {
        if let Err(failure) = parser.push(piece, &mut read) {
            return (read, Err(failure), parser.skipped);
        }
    }
    let end = parser.end(&mut read);
    (read, end, parser.skipped)
}

/// Checks that the result does not depend on how the stream is split.
fn read_split_everywhere(api: ModelApiKind, text: &str) -> (Vec<AnswerPiece>, Result<(), ModelFailure>, u32) {
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
fn anthropic_thinking_tools_and_unknown_events() {
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
    let (pieces, end, skipped) = read_split_everywhere(ModelApiKind::Messages, &text);
    let usage = |output_tokens| {
        AnswerPiece::Usage(Usage { input_tokens: 9, output_tokens, cache_read_tokens: 100, cache_write_tokens: 20 })
    };
    let expected = [
        AnswerPiece::Model("claude".into()),
        usage(1),
        AnswerPiece::Thinking { block: 0, delta: "grü".into() },
        AnswerPiece::Signature { block: 0, delta: "sig".into() },
        AnswerPiece::BlockEnd { block: 0 },
        AnswerPiece::RedactedThinking { data: "zzz".into() },
        AnswerPiece::Text { block: 3, delta: "Hi".into() },
        AnswerPiece::CallStart { block: 4, id: "t".into(), name: "look".into() },
        AnswerPiece::CallInput { block: 4, delta: "{}".into() },
        AnswerPiece::BlockEnd { block: 4 },
        usage(30),
        AnswerPiece::Stop(ModelStopReason::Tools),
        AnswerPiece::Done,
    ];
    assert_eq!((pieces.as_slice(), end, skipped), (&expected[..], Ok(()), 3));
}

#[test]
fn errors_and_ends_within_a_stream() {
    let begun = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}});
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let (pieces, end, _) = read_split_everywhere(ModelApiKind::Messages, &stream(&[begun.clone(), overloaded]));
    assert_eq!((pieces.len(), end.unwrap_err().kind), (1, ModelFailureKind::Overloaded));
    let (_, end, _) = read_split_everywhere(ModelApiKind::Messages, &stream(&[begun]));
    assert_eq!(end.unwrap_err().kind, ModelFailureKind::Disconnected);
    let (_, end, _) = read_split_everywhere(ModelApiKind::Chat, "data: {\"error\":{\"message\":\"boom\"}}\n\n");
    assert_eq!(end.unwrap_err().kind, ModelFailureKind::ServerError);
    let (_, end, _) = read_split_everywhere(ModelApiKind::Chat, "data: {not json}\n\n");
    assert_eq!(end.unwrap_err().kind, ModelFailureKind::InvalidResponse);
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
    let (pieces, end, skipped) = read_split_everywhere(ModelApiKind::Chat, &text);
    assert_eq!((end, skipped), (Ok(()), 0));
    let has = |piece: AnswerPiece| assert!(pieces.contains(&piece), "{piece:?} is not in {pieces:?}");
    has(AnswerPiece::Thinking { block: 0, delta: "hm2".into() });
    has(AnswerPiece::CallStart { block: 2, id: "a".into(), name: "look".into() });
    has(AnswerPiece::CallInput { block: 2, delta: ":1}".into() });
    has(AnswerPiece::CallStart { block: 3, id: "b".into(), name: "see".into() });
    has(AnswerPiece::Usage(Usage { input_tokens: 10, output_tokens: 7, cache_read_tokens: 40, cache_write_tokens: 0 }));
    assert_eq!(pieces.last(), Some(&AnswerPiece::Done));
}

#[test]
fn chat_deviations_of_local_servers() {
    // Every call complete and with index 0; arguments as an object; no end marker.
    let call = |id: &str| json!({"index": 0, "id": id, "function": {"name": "look", "arguments": {"id": id}}});
    let text = stream(&[chunk(json!({"tool_calls": [call("a"), call("b")]}), None), chunk(json!({}), Some("stop"))]);
    let (pieces, end, _) = read_split_everywhere(ModelApiKind::Chat, &text);
    assert_eq!(end, Ok(()));
    let begun = pieces.iter().filter(|piece| matches!(piece, AnswerPiece::CallStart { .. })).count();
    let ended = pieces.iter().filter(|piece| matches!(piece, AnswerPiece::BlockEnd { .. })).count();
    assert_eq!((begun, ended), (2, 2), "{pieces:?}");
}

fn question<'a>(messages: &'a [ModelMessage], tools: &'a [OfferedTool], names: &'a ToolNames) -> ModelRequest<'a> {
    ModelRequest {
        model: "m",
        system: "Be kind.",
        messages,
        tools,
        names,
        max_output_tokens: Some(100),
        temperature: Some(0.5),
        top_p: None,
        thinking: None,
        thinking_budget_tokens: None,
        stop: &[],
        is_openai_service: false,
    }
}

#[test]
fn request_bodies() {
    let call = ModelToolCall {
        id: "t".into(),
        name: "a.b".into(),
        input: Map::from_iter([("x".into(), json!(1))]),
        signature: Some("thought".into()),
        malformed: None,
    };
    let image = ToolResultContent::Image { media_type: "image/png".into(), data: "AAAA".into() };
    let content = vec![ToolResultContent::Text("seen".into()), image, ToolResultContent::Text(" ".into())];
    let messages = [
        ModelMessage::User(vec!["one".into(), " ".into()]),
        ModelMessage::User(vec!["two".into()]),
        ModelMessage::Assistant(vec![
            AssistantBlock::Thinking { text: "hm".into(), signature: "sig".into() },
            AssistantBlock::ToolCall(call),
        ]),
        ModelMessage::ToolResults(vec![ModelToolResult {
            call_id: "t".into(),
            name: "a.b".into(),
            content,
            is_error: false,
        }]),
    ];
    let tools = [OfferedTool { name: "a.b".into(), description: "d".into(), schema: json!({"type": "object"}) }];
    let names = ToolNames::new(["a.b"]);
    let made = body(
        ModelApiKind::Messages,
        &ModelRequest { thinking: Some(Thinking::High), ..question(&messages, &tools, &names) },
    );
    assert_eq!(made["messages"].as_array().unwrap().len(), 3, "consecutive messages are merged: {made}");
    assert_eq!(made["messages"][0]["content"].as_array().unwrap().len(), 2, "blank texts are omitted");
    assert_eq!(made["messages"][1]["content"][0]["signature"], "sig");
    assert_eq!(made["messages"][1]["content"][1]["name"], made["tools"][0]["name"]);
    let result = &made["messages"][2]["content"][0];
    assert_eq!(
        (&result["content"][1]["source"]["data"], result["content"].as_array().unwrap().len()),
        (&json!("AAAA"), 2)
    );
    assert!(result["cache_control"].is_object() && made["system"][0]["cache_control"].is_object());
    assert_eq!((&made["thinking"]["type"], &made["output_config"]["effort"]), (&json!("adaptive"), &json!("high")));
    let fixed = body(
        ModelApiKind::Messages,
        &ModelRequest { thinking_budget_tokens: Some(2000), ..question(&messages, &[], &names) },
    );
    assert!(fixed["max_tokens"].as_u64().unwrap() > 2000 && fixed["thinking"]["budget_tokens"] == 2000);

    assert_eq!((&made["temperature"], made.get("top_p")), (&json!(0.5), None));

    let made = body(ModelApiKind::Chat, &question(&messages, &tools, &names));
    assert_eq!(made["temperature"], 0.5);
    let roles: Vec<&str> = made["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(made["messages"][2]["tool_calls"][0]["function"]["arguments"], "{\"x\":1}");
    assert_eq!(made["messages"][4]["content"][1]["image_url"]["url"], "data:image/png;base64,AAAA");
    assert_eq!((&made["max_tokens"], &made["stream_options"]["include_usage"]), (&json!(100), &json!(true)));
    let own =
        body(ModelApiKind::Chat, &ModelRequest { is_openai_service: true, ..question(&messages, &tools, &names) });
    assert_eq!(own["max_completion_tokens"], 100);

    let signed = body(ModelApiKind::Gemini, &question(&messages, &tools, &names));
    let roles: Vec<&str> =
        signed["contents"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "user", "model", "user"]);
    let call = &signed["contents"][2]["parts"][0];
    assert_eq!((&call["functionCall"]["args"]["x"], &call["thoughtSignature"]), (&json!(1), &json!("thought")));
    let results = signed["contents"][3]["parts"].as_array().unwrap();
    assert_eq!(results[0]["functionResponse"]["name"], call["functionCall"]["name"]);
    assert!(results[0]["functionResponse"]["response"]["output"].as_str().unwrap().starts_with("seen"));
    assert_eq!(results[1]["inlineData"], json!({"mimeType": "image/png", "data": "AAAA"}));
    assert_eq!(
        (&signed["generationConfig"]["maxOutputTokens"], &signed["generationConfig"]["temperature"]),
        (&json!(100), &json!(0.5))
    );
    assert_eq!(signed["generationConfig"]["thinkingConfig"], json!({"includeThoughts": true}));

    let reasoned =
        [ModelMessage::Assistant(vec![AssistantBlock::RedactedThinking(r#"{"type":"reasoning","id":"r"}"#.into())])];
    let messages = [&messages[..2], &reasoned, &messages[2..]].concat();
    let made = body(ModelApiKind::Responses, &ModelRequest { model: "gpt-5", ..question(&messages, &tools, &names) });
    let kinds: Vec<&str> = made["input"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "message", "reasoning", "function_call", "function_call_output"]);
    assert_eq!(made["input"][4]["output"][1]["image_url"], "data:image/png;base64,AAAA");
    assert_eq!((&made["store"], &made["include"][0]), (&json!(false), &json!("reasoning.encrypted_content")));
    assert_eq!((&made["reasoning"]["summary"], &made["max_output_tokens"]), (&json!("auto"), &json!(100)));
    let plain = body(ModelApiKind::Responses, &ModelRequest { model: "gpt-4o", ..question(&messages, &[], &names) });
    assert!(plain["reasoning"].is_null() && plain["include"].is_null(), "{plain}");
}

#[test]
fn gemini_thoughts_calls_and_usage() {
    let part =
        |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}}], "modelVersion": "g"});
    let mut last = part(json!([{"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "s"}]));
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = json!({"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 2,
                                   "thoughtsTokenCount": 3});
    let text =
        stream(&[part(json!([{"text": "hm", "thought": true}])), part(json!([{"text": "Grüße"}, {"text": ""}])), last]);
    let (pieces, end, skipped) = read_split_everywhere(ModelApiKind::Gemini, &text);
    let expected = [
        AnswerPiece::Model("g".into()),
        AnswerPiece::Thinking { block: 0, delta: "hm".into() },
        AnswerPiece::Text { block: 1, delta: "Grüße".into() },
        AnswerPiece::CallStart { block: 2, id: String::new(), name: "look".into() },
        AnswerPiece::CallInput { block: 2, delta: "{\"at\":1}".into() },
        AnswerPiece::Signature { block: 2, delta: "s".into() },
        AnswerPiece::BlockEnd { block: 2 },
        AnswerPiece::Usage(Usage { input_tokens: 6, output_tokens: 5, cache_read_tokens: 4, cache_write_tokens: 0 }),
        AnswerPiece::Stop(ModelStopReason::Tools),
        AnswerPiece::Done,
    ];
    assert_eq!((pieces.as_slice(), end, skipped), (&expected[..], Ok(()), 0));
    let (_, end, _) = read_split_everywhere(ModelApiKind::Gemini, &stream(&[part(json!([{"text": "half"}]))]));
    assert_eq!(
        end.unwrap_err().kind,
        ModelFailureKind::Disconnected,
        "without a finish reason the answer is incomplete"
    );
    let blocked = stream(&[json!({"promptFeedback": {"blockReason": "SAFETY"}})]);
    let (pieces, end, _) = read_split_everywhere(ModelApiKind::Gemini, &blocked);
    assert_eq!((pieces, end), (vec![AnswerPiece::Stop(ModelStopReason::Refused), AnswerPiece::Done], Ok(())));
}

#[test]
fn responses_reasoning_calls_and_usage() {
    let reasoning =
        json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "zzz", "status": "completed"});
    let call = |arguments: &str| json!({"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": arguments});
    let usage = json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5});
    let text = stream(&[
        json!({"type": "response.created", "response": {"model": "gpt"}}),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"}),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message"}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Hi"}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message"}}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": call("")}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": call("{}")}),
        json!({"type": "response.some_day"}),
        json!({"type": "response.completed", "response": {"usage": usage}}),
    ]);
    let (pieces, end, skipped) = read_split_everywhere(ModelApiKind::Responses, &text);
    let kept = r#"{"encrypted_content":"zzz","id":"r","summary":[],"type":"reasoning"}"#;
    let AnswerPiece::RedactedThinking { data } = &pieces[3] else { panic!("{pieces:?}") };
    assert_eq!(serde_json::from_str::<Value>(data).unwrap(), serde_json::from_str::<Value>(kept).unwrap());
    let expected = [
        AnswerPiece::Model("gpt".into()),
        AnswerPiece::Thinking { block: 0, delta: "hm".into() },
        AnswerPiece::Thinking { block: 0, delta: "\n\n".into() },
        AnswerPiece::RedactedThinking { data: data.clone() },
        AnswerPiece::BlockEnd { block: 0 },
        AnswerPiece::Text { block: 1, delta: "Hi".into() },
        AnswerPiece::BlockEnd { block: 1 },
        AnswerPiece::CallStart { block: 2, id: "c".into(), name: "look".into() },
        AnswerPiece::CallInput { block: 2, delta: "{}".into() },
        AnswerPiece::BlockEnd { block: 2 },
        AnswerPiece::Usage(Usage { input_tokens: 6, output_tokens: 5, cache_read_tokens: 4, cache_write_tokens: 0 }),
        AnswerPiece::Stop(ModelStopReason::Tools),
        AnswerPiece::Done,
    ];
    assert_eq!((pieces.as_slice(), end, skipped), (&expected[..], Ok(()), 1));
    let failed =
        json!({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "slow"}}});
    let (_, end, _) = read(ModelApiKind::Responses, &[stream(&[failed]).as_bytes()]);
    assert_eq!(end.unwrap_err().kind, ModelFailureKind::RateLimited);
    let details = json!({"reason": "max_output_tokens"});
    let cut = json!({"type": "response.incomplete", "response": {"incomplete_details": details}});
    let (pieces, end, _) = read(ModelApiKind::Responses, &[stream(&[cut]).as_bytes()]);
    assert_eq!((&pieces[0], end), (&AnswerPiece::Stop(ModelStopReason::Length), Ok(())));
}
