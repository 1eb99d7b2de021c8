//! The tools themselves, and the way to them with a pass.

use super::{
    Called, answered, call,
    pass::{ASK, Call, Issued, MAX_CALLS, PREFIX, Pass, Passes},
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
fn the_time_is_told_at_once() {
    let Called::Done(outcome) = call("current_time", &json!({}), Timestamp::from_millis(0)) else { panic!() };
    assert!(outcome.text.starts_with("1970-01-01T00:00:00"), "{}", outcome.text);
}

#[test]
fn a_question_is_asked_and_its_answer_is_the_result() {
    let question = json!({"question": "Which?", "options": ["a", "b"]});
    assert_eq!(call("ask_user", &question, Timestamp::from_millis(0)), Called::Ask { input: question.clone() });
    assert_eq!(answered(Decision::Allow, Some(&json!({"answer": "b"}))).text, "b");
    assert!(answered(Decision::Deny, None).is_error && answered(Decision::Expired, None).is_error);
}

#[test]
fn bad_calls_are_errors_a_model_can_act_on() {
    for (name, arguments) in [("ask_user", json!({})), ("ask_user", json!({"question": " "})), ("x", json!({}))] {
        let Called::Done(outcome) = call(name, &arguments, Timestamp::from_millis(0)) else { panic!() };
        assert!(outcome.is_error && !outcome.text.is_empty());
    }
}

fn issued() -> (Passes, Issued, Arc<Pass>) {
    let passes = Passes::default();
    let issued = passes.issue().unwrap();
    let pass = passes.find(issued.reveal().as_bytes()).unwrap();
    (passes, issued, pass)
}

fn question() -> Value {
    json!({"question": "Which?"})
}

/// What came of it; `None` when the client had given it up.
async fn said(call: &Call, name: &str, arguments: Value) -> Option<(String, bool)> {
    call.tool(name, &arguments).await.map(|outcome| (outcome.text, outcome.is_error))
}

#[tokio::test]
async fn tools_are_called_by_the_names_they_have_on_this_way() {
    let (_passes, _issued, pass) = issued();
    let call = pass.begin("1").unwrap();
    assert!(!said(&call, "current_time", json!({})).await.unwrap().1);
    let (text, is_error) = said(&call, "ask_user", question()).await.unwrap();
    assert!(is_error && text.contains(ASK), "{text}");
}

#[tokio::test]
async fn a_question_waits_for_its_answer_and_holds_up_nothing() {
    let (_passes, issued, pass) = issued();
    let mut questions = issued.begin();
    let (asking, other) = (pass.begin("1").unwrap(), pass.begin("2").unwrap());
    let answering = async {
        let asked = questions.next().await.unwrap();
        assert_eq!(asked.input, question());
        assert!(!said(&other, "current_time", json!({})).await.unwrap().1);
        asked.answer.send((Decision::Allow, Some(json!({"answer": "this"})))).unwrap();
    };
    let (said, ()) = tokio::join!(said(&asking, ASK, question()), answering);
    assert_eq!(said, Some(("this".into(), false)));
}

#[tokio::test]
async fn without_a_turn_a_question_is_an_error_and_so_is_one_whose_turn_ends() {
    let (_passes, issued, pass) = issued();
    let call = pass.begin("1").unwrap();
    assert!(said(&call, ASK, question()).await.unwrap().1);
    let mut questions = issued.begin();
    let ending = async {
        drop(questions.next().await.unwrap());
        drop(questions);
    };
    let (asked, ()) = tokio::join!(said(&call, ASK, question()), ending);
    assert!(asked.unwrap().1);
    assert!(said(&call, ASK, question()).await.unwrap().1);
}

#[tokio::test]
async fn a_question_that_its_client_gives_up_is_withdrawn() {
    let (_passes, issued, pass) = issued();
    let mut questions = issued.begin();
    let (call, namesake) = (pass.begin("1").unwrap(), pass.begin("1").unwrap());
    let giving_up = async {
        let mut asked = questions.next().await.unwrap();
        pass.cancel("2");
        pass.cancel("1");
        assert!(!asked.answer.is_closed(), "another client has the same id: it may not be this one that is meant");
        drop(namesake);
        pass.cancel("1");
        asked.answer.closed().await;
    };
    assert_eq!(tokio::join!(said(&call, ASK, question()), giving_up).0, None);
}

#[tokio::test]
async fn invariant_14_limits_so_many_requests_and_questions_are_open_at_once() {
    let (_passes, issued, pass) = issued();
    let _questions = issued.begin();
    let calls: Vec<Call> = (0..MAX_CALLS).map(|id| pass.begin(&id.to_string()).unwrap()).collect();
    assert!(pass.begin("one more").is_none());
    let arguments = question();
    let mut open: Vec<_> = calls[..MAX_QUESTIONS].iter().map(|call| Box::pin(call.tool(ASK, &arguments))).collect();
    for asked in &mut open {
        assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let (text, is_error) = said(&calls[MAX_QUESTIONS], ASK, question()).await.unwrap();
    assert!(is_error && text.contains("Too many"), "{text}");
    drop(open);
    {
        let mut again = pin!(calls[0].tool(ASK, &arguments));
        assert!(again.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(calls);
    assert!(pass.begin("one more").is_some());
}

#[tokio::test]
async fn invariant_17_secrets_stay_a_pass_is_good_for_one_process_and_as_long_as_it_lives() {
    let (passes, issued, pass) = issued();
    let other = passes.issue().unwrap();
    let secret = issued.reveal().to_owned();
    assert!(secret.starts_with(PREFIX) && secret.len() == PREFIX.len() + 64 && secret != other.reveal());
    assert_ne!(passes.find(other.reveal().as_bytes()).unwrap().number(), pass.number());
    let cut = &secret[..secret.len() - 1];
    for wrong in [String::new(), PREFIX.into(), cut.into(), format!("{cut}g"), format!("{secret}0")] {
        assert!(passes.find(wrong.as_bytes()).is_none(), "{wrong}");
    }
    for shown in [format!("{passes:?}"), format!("{issued:?}"), format!("{pass:?}")] {
        assert!(!shown.contains(&secret[PREFIX.len()..]), "{shown}");
    }
    let mut questions = issued.begin();
    let call = pass.begin("1").unwrap();
    let ending = async {
        let asked = questions.next().await.unwrap();
        drop(issued);
        asked
    };
    let (said, _asked) = tokio::join!(said(&call, ASK, question()), ending);
    assert_eq!(said, None, "nobody hears the answer");
    assert!(passes.find(secret.as_bytes()).is_none() && passes.find(other.reveal().as_bytes()).is_some());
}
