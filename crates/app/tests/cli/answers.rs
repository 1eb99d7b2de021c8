//! What is said reaches the room, word by word, and nothing else does.

use crate::{
    scene::{Audience, answered, counted, data, journal, message_of, say},
    stage::{Cli, Stage},
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};

with_each_cli! { text_streams, thinking_is_told_apart, two_turns_are_one_conversation, usage_is_counted_once }

async fn text_streams(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let mut audience = Audience::of(&api, room).await;
    let run = say(&api, room, "!count 40 25").await;
    audience.first_word(run).await;
    assert!(!api.run(run).await.unwrap().status.is_terminal(), "the first word came before the last");
    audience.end_of(run).await;
    let run = api.run(run).await.unwrap();
    let story = stage.story(&run, &audience.seen);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    let message = message_of(&api, &run).await;
    assert_eq!((message.text.trim(), message.status), (counted(40).as_str(), MessageStatus::Complete), "{story}");
    let deltas = audience.seen.iter().filter(|event| event.kind == EventType::ContentDelta).count();
    assert!(deltas > 5, "{deltas} deltas for 40 words\n{story}");
}

async fn thinking_is_told_apart(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let run = answered(&api, room, "!think about the weather").await;
    let message = message_of(&api, &run).await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    assert!(!message.thinking.is_empty() && !message.text.is_empty(), "{story}");
    assert!(!message.text.contains(&message.thinking), "{story}");
}

async fn two_turns_are_one_conversation(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    answered(&api, room, "remember the apples").await;
    let before = stage.program_processes();
    let run = answered(&api, room, "!recall").await;
    let message = message_of(&api, &run).await;
    assert!(message.text.contains("remember the apples"), "{}", stage.story(&run, &journal(&api, room).await));
    assert!(
        !before.is_empty() && stage.program_processes() == before,
        "the second turn was answered by the same process"
    );
}

async fn usage_is_counted_once(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let first = answered(&api, room, "one").await;
    let second = answered(&api, room, "two").await;
    let story = stage.story(&second, &journal(&api, room).await);
    assert!(first.usage.output_tokens > 0 && second.usage.output_tokens > 0, "{story}");
    // Figures of the whole session would grow with every turn.
    assert!(second.usage.output_tokens < 2 * first.usage.output_tokens + 5, "{first:?}\n{story}");
    if stage.cli == Cli::ClaudeCode {
        assert!(second.cost.is_some(), "Claude Code says what it cost\n{story}");
    }
    let reported =
        journal(&api, room).await.iter().filter(|event| event.kind == EventType::UsageReported).map(data).count();
    assert!(reported >= 2, "{story}");
}
