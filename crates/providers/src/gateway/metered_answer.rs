//! Reads what a model call has used from its answer, while that is passed on.

use super::RunMeter;
use crate::direct::wire::{AnswerParser, AnswerPiece, ModelApiKind};
use domain::usage::Usage;

/// A larger answer that is not a stream is passed on without being counted. Those of the APIs are far smaller.
const MAX_WHOLE_BYTES: usize = 8 << 20;

/// Dropping it records what was read: a call that was broken off has used something too.
pub(super) struct MeteredAnswer {
    reading: AnswerReading,
    pieces: Vec<AnswerPiece>,
    model: Option<String>,
    usage: Option<Usage>,
    meter: RunMeter,
}

enum AnswerReading {
    Stream(Box<AnswerParser>),
    Whole(Box<AnswerParser>, Vec<u8>),
    /// It cannot be read. What was seen until then counts.
    Nothing,
}

impl MeteredAnswer {
    /// `route` is the API's name at the gateway. Answers of unknown paths have no usage.
    pub fn new(route: &str, path: &str, is_stream: bool, meter: RunMeter) -> Self {
        let reading = match (api(route, path).map(|api| Box::new(AnswerParser::new(api, false))), is_stream) {
            (Some(parser), true) => AnswerReading::Stream(parser),
            (Some(parser), false) => AnswerReading::Whole(parser, Vec::new()),
            (None, _) => AnswerReading::Nothing,
        };
        Self { reading, pieces: Vec::new(), model: None, usage: None, meter }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let is_readable = match &mut self.reading {
            AnswerReading::Stream(parser) => parser.push(bytes, &mut self.pieces).is_ok(),
            AnswerReading::Whole(_, body) => {
                body.extend_from_slice(bytes);
                body.len() <= MAX_WHOLE_BYTES
            }
            AnswerReading::Nothing => true,
        };
        self.take_pieces();
        if !is_readable {
            self.reading = AnswerReading::Nothing;
        }
    }

    fn take_pieces(&mut self) {
        for piece in self.pieces.drain(..) {
            match piece {
                AnswerPiece::Model(model) => self.model = Some(model),
                AnswerPiece::Usage(usage) => self.usage = Some(usage),
                _ => {}
            }
        }
    }
}

impl Drop for MeteredAnswer {
    fn drop(&mut self) {
        if let AnswerReading::Whole(parser, body) = &mut self.reading
            && let Ok(text) = std::str::from_utf8(body)
            && let Err(error) = parser.push_whole(text, &mut self.pieces)
        {
            // Such as the JSON of an error.
            tracing::debug!(?error, "the answer of a model API has no usage");
        }
        self.take_pieces();
        if let Some(usage) = self.usage.filter(|usage| usage.total() > 0) {
            self.meter.record(self.model.take(), usage);
        }
    }
}

fn api(route: &str, path: &str) -> Option<ModelApiKind> {
    match route {
        "anthropic" => Some(ModelApiKind::Messages),
        "openai" if path.ends_with("/responses") => Some(ModelApiKind::Responses),
        "openai" if path.ends_with("/chat/completions") => Some(ModelApiKind::Chat),
        "gemini" => Some(ModelApiKind::Gemini),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{MeteredAnswer, RunMeter};
    use domain::usage::Usage;

    /// Returns what is counted of an answer that arrives in two pieces.
    fn counted(route: &str, path: &str, is_stream: bool, body: &str) -> Vec<(Option<String>, Usage)> {
        let meter = RunMeter::default();
        let mut answer = MeteredAnswer::new(route, path, is_stream, meter.clone());
        let (first, second) = body.split_at(body.len() / 2);
        answer.push(first.as_bytes());
        answer.push(second.as_bytes());
        drop(answer);
        meter.read().usage.into_iter().collect()
    }

    fn usage(input_tokens: u64, output_tokens: u64, cache_read_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens: 0 }
    }

    #[test]
    fn streams_of_all_apis_are_counted() {
        let messages = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\",\
                        \"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":4,\"output_tokens\":1}}}\n\n\
                        data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":9}}\n\n";
        let messages = counted("anthropic", "/v1/messages", true, messages);
        assert_eq!(messages, [(Some("claude".into()), usage(10, 9, 4))]);
        let responses = "data: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt\"}}\n\n\
                         data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":10,\
                         \"output_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":4}}}}\n\n";
        assert_eq!(counted("openai", "/responses", true, responses), [(Some("gpt".into()), usage(6, 9, 4))]);
        let gemini = "data: {\"modelVersion\":\"gemini\",\"usageMetadata\":{\"promptTokenCount\":10,\
                      \"candidatesTokenCount\":9}}\n\n";
        let gemini = counted("gemini", "/v1beta/models/gemini:streamGenerateContent", true, gemini);
        assert_eq!(gemini, [(Some("gemini".into()), usage(10, 9, 0))]);
        let chat =
            "data: {\"model\":\"gpt\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":9}}\n\n";
        assert_eq!(counted("openai", "/v1/chat/completions", true, chat), [(Some("gpt".into()), usage(10, 9, 0))]);
    }

    #[test]
    fn whole_answers_are_counted() {
        let message = "{\n  \"type\": \"message\", \"model\": \"claude\",\n  \"usage\": {\"input_tokens\": 10, \
                       \"output_tokens\": 9}\n}";
        let counted_message = counted("anthropic", "/v1/messages", false, message);
        assert_eq!(counted_message, [(Some("claude".into()), usage(10, 9, 0))]);
        let response = r#"{"model":"gpt","usage":{"input_tokens":10,"output_tokens":9}}"#;
        assert_eq!(counted("openai", "/responses", false, response), [(None, usage(10, 9, 0))]);
        let gemini = r#"{"modelVersion":"g","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":9}}"#;
        assert_eq!(counted("gemini", "/x:generateContent", false, gemini), [(Some("g".into()), usage(10, 9, 0))]);
    }

    #[test]
    fn what_was_read_of_a_broken_answer_counts_and_errors_do_not() {
        let broken = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\",\"usage\":\
                      {\"input_tokens\":10}}}\n\ndata: {not json\n\n";
        assert_eq!(counted("anthropic", "/v1/messages", true, broken), [(Some("claude".into()), usage(10, 0, 0))]);
        assert!(counted("anthropic", "/v1/messages", false, r#"{"type":"error","error":{}}"#).is_empty());
        assert!(counted("anthropic", "/v1/messages", false, "<html>").is_empty());
        assert!(counted("openai", "/v1/models", false, r#"{"usage":{"input_tokens":10}}"#).is_empty());
    }
}
