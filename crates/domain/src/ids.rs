//! One type per kind of id, so that a room id cannot be passed as a run id. All are UUIDv7: sortable by creation time.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = Uuid, examples("0199c1de-7d3f-7000-8000-000000000001"))]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new id. Time-ordered, and strictly increasing within this process.
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(s).map(Self)
            }
        }
    };
}

id!(AgentId);
id!(RoomId);
id!(RunId);
id!(EventId);
id!(
    /// A message's id; for an agent's answer it is also the `stream_id` of its deltas.
    MessageId
);
id!(ApprovalId);
id!(BudgetId);
id!(
    /// A note that an agent keeps across rooms.
    MemoryId
);
id!(TokenId);
id!(
    /// A browser session: a browser that is signed in.
    BrowserSessionId
);
id!(
    /// A person or a service account.
    UserId
);
id!(UploadId);
id!(ProjectId);
id!(
    /// A command in the sandbox of a project.
    CommandId
);
id!(SkillId);
id!(
    /// An entry in a skill's training history.
    RoundId
);
id!(ProposalId);
id!(
    /// A stored request to a run.
    SignalId
);

impl UserId {
    /// The user of the operator's workspace, who exists from the start.
    pub const LOCAL: Self = Self(Uuid::from_u128(1));
}
