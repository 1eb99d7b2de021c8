//! Signals: requests to an unfinished run. A signal is stored first and then carried out by the server that holds the
//! run, which may be another one than the server that accepted it (invariant 23).

use crate::{
    approval::{DecisionAuthor, RememberScope},
    event::Decision,
    ids::{ApprovalId, MessageId, RunId, SignalId, UserId},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest stored body, as JSON: a little more than the input of any tool call.
pub const MAX_SIGNAL_BYTES: usize = 4 * 1024 * 1024;
/// How many signals may wait for one run.
pub const MAX_PENDING_SIGNALS: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    pub id: SignalId,
    pub run_id: RunId,
    pub body: SignalBody,
}

impl Signal {
    pub fn new(run_id: RunId, body: SignalBody) -> Self {
        Self { id: SignalId::generate(), run_id, body }
    }
}

/// What is asked of the run. The names are stored: fields may be added, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SignalBody {
    AnswerApproval {
        approval_id: ApprovalId,
        decision: Decision,
        /// Replaces the input of the tool call; for a question, the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// Allow such calls for this agent in this room from now on. Without a scope: the whole tool.
        #[serde(default)]
        remember: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<RememberScope>,
        /// Who answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_id: Option<UserId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<DecisionAuthor>,
    },
    /// Take a posted message into the answer in progress.
    Steer { message_id: MessageId },
    /// The tool needs approval again.
    ForgetTool { tool: String },
}

impl SignalBody {
    pub fn kind(&self) -> SignalKind {
        match self {
            Self::AnswerApproval { .. } => SignalKind::AnswerApproval,
            Self::Steer { .. } => SignalKind::Steer,
            Self::ForgetTool { .. } => SignalKind::ForgetTool,
        }
    }
}

macro_rules! stored_names {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $type {
            /// The name in the database.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub fn parse(name: &str) -> Option<Self> {
                [$(Self::$variant),*].into_iter().find(|one| one.as_str() == name)
            }
        }
    };
}

stored_names!(SignalKind { AnswerApproval = "answer_approval", Steer = "steer", ForgetTool = "forget_tool" });

impl SignalKind {
    /// A posted message needs an answer even if the run ends first; other signals lose their purpose with the run.
    pub fn outlives_its_run(self) -> bool {
        self == Self::Steer
    }
}

stored_names!(
    /// What became of a signal.
    SignalOutcome {
        CarriedOut = "carried_out",
        /// The approval does not exist or was already resolved.
        NotPending = "not_pending",
        /// The answer to a question cannot be remembered.
        NotRememberable = "not_rememberable",
        /// The run did not take the message; another run was queued to answer it.
        Queued = "queued",
        RunEnded = "run_ended",
    }
);

#[cfg(test)]
mod tests {
    use super::{SignalBody, SignalKind, SignalOutcome};
    use crate::{
        event::Decision,
        ids::{ApprovalId, MessageId},
    };
    use serde_json::json;

    /// Rows of earlier versions must stay readable.
    #[test]
    fn stored_names_do_not_change() {
        let (approval_id, message_id) = (ApprovalId::generate(), MessageId::generate());
        let bodies = [
            (
                SignalBody::AnswerApproval {
                    approval_id,
                    decision: Decision::Allow,
                    input: None,
                    remember: true,
                    scope: None,
                    user_id: None,
                    author: None,
                },
                json!({"kind": "answer_approval", "approval_id": approval_id, "decision": "allow", "remember": true}),
            ),
            (SignalBody::Steer { message_id }, json!({"kind": "steer", "message_id": message_id})),
            (SignalBody::ForgetTool { tool: "Bash".into() }, json!({"kind": "forget_tool", "tool": "Bash"})),
        ];
        for (body, stored) in bodies {
            assert_eq!(serde_json::to_value(&body).unwrap(), stored);
            assert_eq!(body.kind().as_str(), stored["kind"]);
            assert_eq!(SignalKind::parse(body.kind().as_str()), Some(body.kind()));
            assert_eq!(serde_json::from_value::<SignalBody>(stored).unwrap(), body);
        }
        for name in ["carried_out", "not_pending", "not_rememberable", "queued", "run_ended"] {
            assert_eq!(SignalOutcome::parse(name).map(SignalOutcome::as_str), Some(name));
        }
    }
}
