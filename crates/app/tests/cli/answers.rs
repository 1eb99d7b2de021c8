//! Answers of the programs reach the room completely and as a stream.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{RoomFollower, counted, data, journal, message_of, post_and_wait, post_text},
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};

with_each_cli! { text_streams, thinking_is_separate_from_text, two_turns_are_one_conversation, usage_is_counted_once }

async fn text_streams(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let mut follower = RoomFollower::start(&api, room).await;
    let run = post_text(&api, room, "!count 40 25").await;
    follower.first_delta(run).await;
    assert!(!api.run(run).await.unwrap().status.is_terminal(), "the first delta must arrive before the run ends");
    follower.end_of(run).await;
    let run = api.run(run).await.unwrap();
    let details = fixture.details(&run, &follower.seen);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let message = message_of(&api, &run).await;
    assert_eq!((message.text.trim(), message.status), (counted(40).as_str(), MessageStatus::Complete), "{details}");
    let deltas = follower.seen.iter().filter(|event| event.kind == EventType::ContentDelta).count();
    assert!(deltas > 5, "{deltas} deltas for 40 words\n{details}");
}

async fn thinking_is_separate_from_text(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let run = post_and_wait(&api, room, "!think about the weather").await;
    let message = message_of(&api, &run).await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    assert!(!message.thinking.is_empty() && !message.text.is_empty(), "{details}");
    assert!(!message.text.contains(&message.thinking), "{details}");
}

async fn two_turns_are_one_conversation(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    post_and_wait(&api, room, "remember the apples").await;
    let before = fixture.program_processes();
    let run = post_and_wait(&api, room, "!recall").await;
    let message = message_of(&api, &run).await;
    assert!(message.text.contains("remember the apples"), "{}", fixture.details(&run, &journal(&api, room).await));
    assert!(!before.is_empty() && fixture.program_processes() == before, "the second turn must use the same process");
}

async fn usage_is_counted_once(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let first = post_and_wait(&api, room, "one").await;
    let second = post_and_wait(&api, room, "two").await;
    let details = fixture.details(&second, &journal(&api, room).await);
    assert!(first.usage.output_tokens > 0 && second.usage.output_tokens > 0, "{details}");
    // Totals of the whole session would grow with every turn.
    assert!(second.usage.output_tokens < 2 * first.usage.output_tokens + 5, "{first:?}\n{details}");
    if fixture.cli == Cli::ClaudeCode {
        assert!(second.cost.is_some(), "Claude Code reports the cost\n{details}");
    }
    let reported =
        journal(&api, room).await.iter().filter(|event| event.kind == EventType::UsageReported).map(data).count();
    assert!(reported >= 2, "{details}");
}
