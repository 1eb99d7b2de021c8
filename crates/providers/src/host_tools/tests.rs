//! The host tools, and access to them with an agent token.

use super::{
    HostToolReply,
    agent_token::{
        AGENT_TOKEN_PREFIX, ASK_PEOPLE, AgentToken, AgentTokenLease, AgentTokens, HostToolRequest, MAX_REQUESTS,
    },
    call, outcome_of_answer,
    questions::MAX_QUESTIONS,
};
use domain::{event::Decision, time::Timestamp};
use serde_json::{Value, json};
use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

#[test]
fn current_time_returns_immediately() {
    let HostToolReply::Done(outcome) = call("current_time", &json!({}), Timestamp::from_millis(0)) else { panic!() };
    assert!(outcome.text.starts_with("1970-01-01T00:00:00"), "{}", outcome.text);
}

#[test]
fn answer_of_a_question_is_its_result() {
    let question = json!({"question": "Which?", "options": ["a", "b"]});
    assert_eq!(call("ask_user", &question, Timestamp::from_millis(0)), HostToolReply::Ask { input: question.clone() });
    assert_eq!(outcome_of_answer(Decision::Allow, Some(&json!({"answer": "b"}))).text, "b");
    assert!(outcome_of_answer(Decision::Deny, None).is_error && outcome_of_answer(Decision::Expired, None).is_error);
}

#[test]
fn invalid_calls_return_helpful_errors() {
    for (name, arguments) in [("ask_user", json!({})), ("ask_user", json!({"question": " "})), ("x", json!({}))] {
        let HostToolReply::Done(outcome) = call(name, &arguments, Timestamp::from_millis(0)) else { panic!() };
        assert!(outcome.is_error && !outcome.text.is_empty());
    }
}

fn lease() -> (AgentTokens, AgentTokenLease, Arc<AgentToken>) {
    let tokens = AgentTokens::default();
    let lease = tokens.issue().unwrap();
    let token = tokens.find(lease.reveal().as_bytes()).unwrap();
    (tokens, lease, token)
}

fn question() -> Value {
    json!({"question": "Which?"})
}

/// The text and `is_error` of the result; `None` if the client canceled the request.
async fn result_of(call: &HostToolRequest, name: &str, arguments: Value) -> Option<(String, bool)> {
    call.call_tool(name, &arguments).await.map(|outcome| (outcome.text, outcome.is_error))
}

#[tokio::test]
async fn tools_are_called_by_their_names_over_mcp() {
    let (_tokens, _lease, token) = lease();
    let call = token.begin_request("1").unwrap();
    assert!(!result_of(&call, "current_time", json!({})).await.unwrap().1);
    let (text, is_error) = result_of(&call, "ask_user", question()).await.unwrap();
    assert!(is_error && text.contains(ASK_PEOPLE), "{text}");
}

#[tokio::test]
async fn waiting_question_does_not_block_other_calls() {
    let (_tokens, lease, token) = lease();
    let mut questions = lease.begin_turn();
    let (asking, other) = (token.begin_request("1").unwrap(), token.begin_request("2").unwrap());
    let answering = async {
        let asked = questions.next().await.unwrap();
        assert_eq!(asked.input, question());
        assert!(!result_of(&other, "current_time", json!({})).await.unwrap().1);
        asked.answer.send((Decision::Allow, Some(json!({"answer": "this"})))).unwrap();
    };
    let (result, ()) = tokio::join!(result_of(&asking, ASK_PEOPLE, question()), answering);
    assert_eq!(result, Some(("this".into(), false)));
}

#[tokio::test]
async fn question_fails_without_a_turn_or_when_its_turn_ends() {
    let (_tokens, lease, token) = lease();
    let call = token.begin_request("1").unwrap();
    assert!(result_of(&call, ASK_PEOPLE, question()).await.unwrap().1);
    let mut questions = lease.begin_turn();
    let ending = async {
        drop(questions.next().await.unwrap());
        drop(questions);
    };
    let (asked, ()) = tokio::join!(result_of(&call, ASK_PEOPLE, question()), ending);
    assert!(asked.unwrap().1);
    assert!(result_of(&call, ASK_PEOPLE, question()).await.unwrap().1);
}

#[tokio::test]
async fn canceled_question_is_withdrawn() {
    let (_tokens, lease, token) = lease();
    let mut questions = lease.begin_turn();
    let (call, namesake) = (token.begin_request("1").unwrap(), token.begin_request("1").unwrap());
    let canceling = async {
        let mut asked = questions.next().await.unwrap();
        token.cancel("2");
        token.cancel("1");
        assert!(!asked.answer.is_closed(), "ambiguous: another client has the same id");
        drop(namesake);
        token.cancel("1");
        asked.answer.closed().await;
    };
    assert_eq!(tokio::join!(result_of(&call, ASK_PEOPLE, question()), canceling).0, None);
}

#[tokio::test]
async fn invariant_14_limits_open_requests_and_questions_are_bounded() {
    let (_tokens, lease, token) = lease();
    let _questions = lease.begin_turn();
    let calls: Vec<HostToolRequest> =
        (0..MAX_REQUESTS).map(|id| token.begin_request(&id.to_string()).unwrap()).collect();
    assert!(token.begin_request("one more").is_none());
    let arguments = question();
    let mut open: Vec<_> =
        calls[..MAX_QUESTIONS].iter().map(|call| Box::pin(call.call_tool(ASK_PEOPLE, &arguments))).collect();
    for asked in &mut open {
        assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let (text, is_error) = result_of(&calls[MAX_QUESTIONS], ASK_PEOPLE, question()).await.unwrap();
    assert!(is_error && text.contains("Too many"), "{text}");
    drop(open);
    {
        let mut again = pin!(calls[0].call_tool(ASK_PEOPLE, &arguments));
        assert!(again.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(calls);
    assert!(token.begin_request("one more").is_some());
}

#[tokio::test]
async fn invariant_17_secrets_stay_an_agent_token_is_valid_for_one_process_while_its_lease_lives() {
    let (tokens, lease, token) = lease();
    let other = tokens.issue().unwrap();
    let secret = lease.reveal().to_owned();
    assert!(
        secret.starts_with(AGENT_TOKEN_PREFIX)
            && secret.len() == AGENT_TOKEN_PREFIX.len() + 64
            && secret != other.reveal()
    );
    assert_ne!(tokens.find(other.reveal().as_bytes()).unwrap().number(), token.number());
    let cut = &secret[..secret.len() - 1];
    for wrong in [String::new(), AGENT_TOKEN_PREFIX.into(), cut.into(), format!("{cut}g"), format!("{secret}0")] {
        assert!(tokens.find(wrong.as_bytes()).is_none(), "{wrong}");
    }
    for shown in [format!("{tokens:?}"), format!("{lease:?}"), format!("{token:?}")] {
        assert!(!shown.contains(&secret[AGENT_TOKEN_PREFIX.len()..]), "{shown}");
    }
    let mut questions = lease.begin_turn();
    let call = token.begin_request("1").unwrap();
    let ending = async {
        let asked = questions.next().await.unwrap();
        drop(lease);
        asked
    };
    let (result, _asked) = tokio::join!(result_of(&call, ASK_PEOPLE, question()), ending);
    assert_eq!(result, None, "no client waits for the result");
    assert!(tokens.find(secret.as_bytes()).is_none() && tokens.find(other.reveal().as_bytes()).is_some());
}
