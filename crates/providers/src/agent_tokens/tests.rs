//! Access to the host tools with an agent token.

use super::{
    AGENT_TOKEN_PREFIX, AgentToken, AgentTokenBinding, AgentTokenLease, AgentTokenScope, AgentTokenTurn, AgentTokens,
    HostToolRequest, MAX_REQUESTS,
};
use crate::{
    AgentWorkspace,
    host_tools::{ASK_PEOPLE, HostToolSignal, UserQuestion, testing::workspace_with, tools},
};
use domain::{event::Decision, ids::RunId};
use serde_json::{Map, Value, json};
use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

/// Questions that may be open at once.
const MAX_QUESTIONS: usize = 16;

struct Fixture {
    tokens: AgentTokens,
    lease: AgentTokenLease,
    token: Arc<AgentToken>,
    workspace: AgentWorkspace,
}

fn fixture() -> Fixture {
    let (tokens, workspace) = (AgentTokens::default(), workspace_with(tools::all()));
    let lease = tokens.issue(&workspace, &[AgentTokenScope::HostTools]).unwrap();
    let token = tokens.find(lease.reveal().as_bytes()).unwrap();
    Fixture { tokens, lease, token, workspace }
}

impl Fixture {
    fn begin_turn(&self) -> AgentTokenTurn {
        self.lease.begin_turn(&self.workspace, RunId::generate())
    }
}

fn question() -> Map<String, Value> {
    json!({"question": "Which?"}).as_object().unwrap().clone()
}

async fn next_question(turn: &mut AgentTokenTurn) -> UserQuestion {
    match turn.next().await.unwrap() {
        HostToolSignal::Question(question) => question,
        other => panic!("{other:?}"),
    }
}

/// The text and `is_error` of the result; `None` if the client canceled the request.
async fn result_of(call: &HostToolRequest, name: &str, arguments: Map<String, Value>) -> Option<(String, bool)> {
    call.call_tool(name, arguments).await.map(|outcome| (outcome.text, outcome.is_error))
}

#[tokio::test]
async fn tools_are_listed_and_called_by_their_names_over_mcp() {
    let fixture = fixture();
    let names: Vec<String> = fixture.token.host_tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["current_time", "ask_user"]);
    let _turn = fixture.begin_turn();
    let call = fixture.token.begin_request("1").unwrap();
    assert!(!result_of(&call, "current_time", Map::new()).await.unwrap().1);
    let (text, is_error) = result_of(&call, "ask_user", question()).await.unwrap();
    assert!(is_error && text.contains("no tool") && text.contains(ASK_PEOPLE), "{text}");
}

#[tokio::test]
async fn a_token_is_bound_to_its_agent_and_during_a_turn_to_its_run() {
    let Fixture { lease, token, workspace, .. } = fixture();
    assert!(token.allows(AgentTokenScope::HostTools));
    let between = AgentTokenBinding {
        owner: workspace.owner.clone(),
        agent_id: workspace.agent.id,
        room_id: workspace.room_id,
        run_id: None,
    };
    assert_eq!(token.binding(), between);
    let run_id = RunId::generate();
    let turn = lease.begin_turn(&workspace, run_id);
    assert_eq!(token.binding().run_id, Some(run_id));
    turn.end().await;
    assert_eq!(token.binding(), between);
    let without = AgentTokens::default().issue(&workspace, &[]).unwrap();
    assert!(!without.token.allows(AgentTokenScope::HostTools));
}

#[tokio::test]
async fn waiting_question_does_not_block_other_calls() {
    let fixture = fixture();
    let mut turn = fixture.begin_turn();
    let (asking, other) = (fixture.token.begin_request("1").unwrap(), fixture.token.begin_request("2").unwrap());
    let answering = async {
        let asked = next_question(&mut turn).await;
        assert_eq!((asked.tool.as_str(), asked.input), ("ask_user", Value::Object(question())));
        assert!(!result_of(&other, "current_time", Map::new()).await.unwrap().1);
        asked.answer.send((Decision::Allow, Some(json!({"answer": "this"})))).unwrap();
    };
    let (result, ()) = tokio::join!(result_of(&asking, ASK_PEOPLE, question()), answering);
    assert_eq!(result, Some(("this".into(), false)));
}

#[tokio::test]
async fn calls_fail_without_a_turn_and_when_their_turn_ends() {
    let fixture = fixture();
    let call = fixture.token.begin_request("1").unwrap();
    for (tool, arguments) in [("current_time", Map::new()), (ASK_PEOPLE, question())] {
        let (text, is_error) = result_of(&call, tool, arguments).await.unwrap();
        assert!(is_error && text.contains("no turn is running"), "{text}");
    }
    let mut turn = fixture.begin_turn();
    let ending = async {
        let _asked = next_question(&mut turn).await;
        turn.end().await;
    };
    let (asked, ()) = tokio::join!(result_of(&call, ASK_PEOPLE, question()), ending);
    assert!(asked.unwrap().1);
    assert!(result_of(&call, ASK_PEOPLE, question()).await.unwrap().1);
}

#[tokio::test]
async fn canceled_question_is_withdrawn() {
    let fixture = fixture();
    let (mut turn, token) = (fixture.begin_turn(), &fixture.token);
    let (call, namesake) = (token.begin_request("1").unwrap(), token.begin_request("1").unwrap());
    let canceling = async {
        let mut asked = next_question(&mut turn).await;
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
    let fixture = fixture();
    let (_turn, token) = (fixture.begin_turn(), &fixture.token);
    let calls: Vec<HostToolRequest> =
        (0..MAX_REQUESTS).map(|id| token.begin_request(&id.to_string()).unwrap()).collect();
    assert!(token.begin_request("one more").is_none());
    let mut open: Vec<_> =
        calls[..MAX_QUESTIONS].iter().map(|call| Box::pin(call.call_tool(ASK_PEOPLE, question()))).collect();
    for asked in &mut open {
        assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let (text, is_error) = result_of(&calls[MAX_QUESTIONS], ASK_PEOPLE, question()).await.unwrap();
    assert!(is_error && text.contains("Too many"), "{text}");
    drop(open);
    {
        let mut again = pin!(calls[0].call_tool(ASK_PEOPLE, question()));
        assert!(again.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(calls);
    assert!(token.begin_request("one more").is_some());
}

#[tokio::test]
async fn invariant_17_secrets_stay_an_agent_token_is_valid_for_one_process_while_its_lease_lives() {
    let Fixture { tokens, lease, token, workspace } = fixture();
    let other = tokens.issue(&workspace, &[AgentTokenScope::HostTools]).unwrap();
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
    let mut turn = lease.begin_turn(&workspace, RunId::generate());
    let call = token.begin_request("1").unwrap();
    let ending = async {
        let asked = next_question(&mut turn).await;
        drop(lease);
        asked
    };
    let (result, _asked) = tokio::join!(result_of(&call, ASK_PEOPLE, question()), ending);
    assert_eq!(result, None, "no client waits for the result");
    assert!(tokens.find(secret.as_bytes()).is_none() && tokens.find(other.reveal().as_bytes()).is_some());
}
