//! Which program a turn gets.

use super::fake::{Asking, Running, Server, Stage, place, stage, stage_with};
use crate::{Place, Provider as _, TurnCommand, TurnEnd, TurnEvent, codex::pool::BUSY};
use serde_json::json;
use std::{path::Path, sync::atomic::Ordering, time::Duration};

async fn begin(stage: &Stage, place: &Place, server: &mut Server) -> (Asking, Running) {
    let asking = stage.ask(place, "hi", None);
    server.start_thread().await;
    let running = server.start_turn().await;
    (asking, running)
}

async fn finish(server: &mut Server, asking: Asking, running: &Running) {
    server.end(running, "completed").await;
    assert_eq!(asking.end().await.1.end, TurnEnd::Completed);
}

#[tokio::test]
async fn two_threads_at_once_on_one_instance_hear_only_their_own() {
    let mut stage = stage(1);
    let place = place(Path::new("a"));
    let first = stage.ask(&place, "one", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    let one = server.start_turn().await;
    let (second, two) = begin(&stage, &place, &mut server).await;
    assert_ne!(one.thread, two.thread);
    for n in 0..50 {
        server.say(&one, "i", &format!("one {n} ")).await;
        server.say(&two, "i", &format!("two {n} ")).await;
    }
    server.end(&two, "completed").await;
    server.end(&one, "completed").await;
    for (asking, word) in [(first, "one"), (second, "two")] {
        let (events, outcome) = asking.end().await;
        assert_eq!(outcome.end, TurnEnd::Completed);
        let said: String = events
            .iter()
            .filter_map(|e| if let TurnEvent::Text { delta, .. } = e { Some(delta.as_str()) } else { None })
            .collect();
        assert_eq!(said, (0..50).map(|n| format!("{word} {n} ")).collect::<String>());
    }
    assert_eq!(stage.running.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn another_instance_of_the_same_agent_comes_only_when_the_first_is_busy_and_threads_stay_where_they_are() {
    let mut stage = stage(2);
    let place = place(Path::new("a"));
    let mut turns = Vec::new();
    let first = stage.ask(&place, "hi", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    turns.push((first, server.start_turn().await));
    while turns.len() < BUSY {
        turns.push(begin(&stage, &place, &mut server).await);
    }
    assert_eq!(stage.running.load(Ordering::SeqCst), 1);
    let mut overflow = stage.ask(&place, "hi", None);
    let mut other = stage.next_server().await;
    let start = other.expect("thread/start").await;
    other.answer(&start, json!({"thread": {"id": "elsewhere"}, "model": "m"})).await;
    let running = other.start_turn().await;
    let session = overflow.session().await;
    finish(&mut other, overflow, &running).await;
    for (asking, running) in turns {
        finish(&mut server, asking, &running).await;
    }
    // The first is idle now and would do, but this thread is open on the other.
    let again = stage.ask(&place, "more", Some(&session));
    let running = other.start_turn().await;
    assert_eq!(running.thread, "elsewhere");
    finish(&mut other, again, &running).await;
}

#[tokio::test]
async fn a_thread_whose_opening_was_broken_off_is_looked_for_where_it_may_be_open() {
    let mut stage = stage(2);
    let place = place(Path::new("a"));
    let first = stage.ask(&place, "hi", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    let mut turns = vec![(first, server.start_turn().await)];
    while turns.len() < BUSY {
        turns.push(begin(&stage, &place, &mut server).await);
    }
    let impatient = stage.ask(&place, "hi", Some("t"));
    let mut other = stage.next_server().await;
    other.expect("thread/resume").await;
    impatient.command(TurnCommand::Interrupt).await;
    assert_eq!(impatient.end().await.1.end, TurnEnd::Stopped);
    for (asking, running) in turns {
        finish(&mut server, asking, &running).await;
    }
    let again = stage.ask(&place, "hi", Some("t"));
    let resume = other.expect("thread/resume").await;
    other.answer(&resume, json!({"thread": {"id": "t"}, "model": "m"})).await;
    let running = other.start_turn().await;
    finish(&mut other, again, &running).await;
}

#[tokio::test]
async fn beyond_the_limit_a_turn_waits_until_another_agents_instance_is_idle() {
    let mut stage = stage(1);
    let (one, two) = (place(Path::new("a")), place(Path::new("b")));
    let first = stage.ask(&one, "hi", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    let mut second = stage.ask(&two, "hi", None);
    let waiting = second.next().await;
    assert!(matches!(&waiting, TurnEvent::Waiting { status, .. } if status == "waiting_for_slot"), "{waiting:?}");
    finish(&mut server, first, &running).await;
    assert_eq!(server.far_end.next().await, None, "it made room");
    let mut other = stage.next_server().await;
    assert_eq!(other.home, Path::new("b"));
    assert_eq!(stage.most.load(Ordering::SeqCst), 1, "never two at once");
    other.start_thread().await;
    let running = other.start_turn().await;
    finish(&mut other, second, &running).await;
}

#[tokio::test]
async fn who_waits_can_leave_and_those_behind_move_up() {
    let mut stage = stage(1);
    let busy = stage.ask(&place(Path::new("a")), "hi", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    let mut impatient = stage.ask(&place(Path::new("b")), "hi", None);
    assert!(matches!(impatient.next().await, TurnEvent::Waiting { .. }));
    let mut patient = stage.ask(&place(Path::new("c")), "hi", None);
    assert!(matches!(patient.next().await, TurnEvent::Waiting { .. }));
    impatient.command(TurnCommand::Interrupt).await;
    assert_eq!(impatient.end().await.1.end, TurnEnd::Stopped);
    finish(&mut server, busy, &running).await;
    let mut other = stage.next_server().await;
    assert_eq!(other.home, Path::new("c"));
    other.start_thread().await;
    let running = other.start_turn().await;
    finish(&mut other, patient, &running).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_nobody_uses_ends_after_a_while() {
    let mut stage = stage_with(1, Duration::from_secs(600));
    let place = place(Path::new("a"));
    let asking = stage.ask(&place, "hi", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    let running = server.start_turn().await;
    finish(&mut server, asking, &running).await;
    tokio::time::sleep(Duration::from_secs(599)).await;
    assert_eq!(stage.running.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(server.far_end.next().await, None);
    assert_eq!(stage.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_agent_that_may_soon_be_asked_finds_its_instance_ready() {
    let mut stage = stage(1);
    let place = place(Path::new("a"));
    stage.codex.prepare(place.clone());
    let mut server = stage.next_server().await;
    stage.codex.prepare(place.clone());
    let (asking, running) = begin(&stage, &place, &mut server).await;
    finish(&mut server, asking, &running).await;
    assert_eq!(stage.running.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_that_stops_interrupts_turns_and_leaves_nothing() {
    let mut stage = stage(2);
    let place = place(Path::new("a"));
    let asking = stage.ask(&place, "hi", None);
    let mut server = stage.next_server().await;
    server.start_thread().await;
    server.start_turn().await;
    stage.codex.close().await;
    assert_eq!(stage.running.load(Ordering::SeqCst), 0);
    assert_eq!(asking.end().await.1.end, TurnEnd::Stopped);
    while server.far_end.next().await.is_some() {}
}

#[tokio::test]
async fn who_came_first_is_served_first() {
    let mut stage = stage(1);
    let pool = stage.codex.pool.clone();
    let tickets = [pool.ticket(), pool.ticket(), pool.ticket()];
    let busy = pool.take(&tickets[0], Path::new("a"), None).unwrap();
    stage.next_server().await;
    busy.instance().await.unwrap();
    assert!(pool.take(&tickets[1], Path::new("b"), None).is_none());
    drop(busy);
    assert!(pool.take(&tickets[2], Path::new("c"), None).is_none(), "somebody waits already");
    assert!(pool.take(&tickets[1], Path::new("b"), None).is_some());
}
