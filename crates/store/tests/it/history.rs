//! The folded view: complete messages, and unfinished answers folded up to exactly the head.

use crate::{
    idempotent::spec,
    scene::{TestRun, append, by, claim, follow, held, journal, me, name, read_until, room, says, within},
};
use domain::{
    event::{ContentDelta, EventBody, MessagePosted, NewEvent, StreamEnd, StreamStart, ThinkingDelta, ToolUse},
    fold::Answer,
    ids::{MessageId, RoomId},
    message::{Author, Message, MessageStatus, Part},
    position::Seq,
    room::WhenBusy,
    time::Timestamp,
};
use store::{
    ProviderSessionRecord, Store, TranscriptRange,
    journal::{Commit, RowChange, SeqRef},
    queue::Claim,
};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;

contract! {
    many threads:
        history_plus_later_events_equals_the_whole_journal;
    one thread:
        an_unfinished_answer_is_folded_up_to_exactly_the_head,
        history_pages_have_no_gap,
        history_pages_with_an_old_unfinished_answer_have_no_gap,
        m6_history_pages_are_bounded_in_bytes,
        m6_a_long_unfinished_answer_is_folded_in_pieces,
        m6_a_run_receives_a_bounded_transcript,
        messages_before_a_run_are_posts_queued_earlier,
        messages_before_a_run_include_later_answers,
        a_session_misses_answers_that_ended_after_its_turn_began,
        answers_stored_by_earlier_versions_are_known_by_where_they_begin,
        a_message_is_found_by_its_id,
        events_of_one_run_are_read_in_order,
        sessions_are_stored_per_room_agent_and_provider;
}

fn message(room: RoomId, text: &str) -> Message {
    Message {
        id: MessageId::generate(),
        room_id: room,
        seq: 0,
        author: Author::Person { name: name("someone"), user_id: None },
        run_id: None,
        status: MessageStatus::Complete,
        text: text.into(),
        thinking: String::new(),
        parts: vec![Part::Text { text: text.into(), item: None }],
        attachments: Vec::new(),
        created_at: Timestamp::from_millis(1_700_000_000_000),
    }
}

pub async fn post(store: &Store, room: RoomId, text: &str) -> Message {
    let mut message = message(room, text);
    let posted = NewEvent::new(MessagePosted {
        message_id: message.id,
        author: message.author.clone(),
        text: text.into(),
        when_busy: WhenBusy::Enqueue,
        mentions: Vec::new(),
        attachments: Vec::new(),
    });
    let put = RowChange::PutMessage { message: message.clone(), seq: SeqRef::Event(0) };
    message.seq = store.commit(Commit { changes: vec![put], ..append(room, vec![posted]) }).await.unwrap().first_seq;
    message
}

/// The posts before a seq, and all answers that have ended.
fn before(posts_before: Seq) -> TranscriptRange {
    TranscriptRange { posts_before, answers_until: Seq::MAX }
}

/// A run whose answer has begun.
struct AnsweringRun {
    room: RoomId,
    run: TestRun,
    lease: Claim,
    stream: MessageId,
    start: Seq,
}

impl AnsweringRun {
    async fn begin(store: &Store, room: RoomId) -> Self {
        let agent = match store.agents(&me()).await.unwrap().into_iter().next() {
            Some(agent) => agent.id,
            None => store.create_agent(&by(&me()), spec("Speaker"), None).await.unwrap().id,
        };
        let run = TestRun { agent, ..TestRun::new() };
        store.commit(run.queueing(room)).await.unwrap();
        let lease = claim(store, "w").await.remove(0);
        Self::start(store, room, run, lease).await
    }

    async fn start(store: &Store, room: RoomId, run: TestRun, lease: Claim) -> Self {
        let stream = MessageId::generate();
        let events = vec![run.event(StreamStart { stream_id: stream })];
        let start = store.commit(Commit { guard: held(&lease), ..append(room, events) }).await.unwrap().first_seq;
        Self { room, run, lease, stream, start }
    }

    fn delta(&self, text: &str) -> EventBody {
        ContentDelta { stream_id: self.stream, delta: text.into(), item: None }.into()
    }

    async fn say(&self, store: &Store, bodies: Vec<EventBody>) {
        let events = bodies.into_iter().map(|body| self.run.event(body)).collect();
        store.commit(Commit { guard: held(&self.lease), ..append(self.room, events) }).await.unwrap();
    }

    /// Ends the run: the message is stored with the terminal event.
    async fn finish(&self, store: &Store, answer: &Answer) {
        let (text, thinking) = answer.texts();
        let ended = self.run.event(StreamEnd {
            stream_id: self.stream,
            response_text: text.clone(),
            thinking_text: thinking.clone(),
            session_id: None,
            memory_entries: Vec::new(),
            model_calls: Vec::new(),
            skipped: false,
        });
        let whole = Message {
            id: self.stream,
            author: Author::Agent { id: self.run.agent, name: name("Speaker") },
            run_id: Some(self.run.id),
            text,
            thinking,
            parts: answer.parts.clone(),
            ..message(self.room, "")
        };
        let mut commit = self.run.ending(self.room, held(&self.lease));
        commit.events.insert(0, ended);
        let ended = SeqRef::Event(commit.events.len() - 1);
        commit.changes.push(RowChange::PutAnswer { message: Message { seq: self.start, ..whole }, ended });
        store.commit(commit).await.unwrap();
    }
}

async fn an_unfinished_answer_is_folded_up_to_exactly_the_head(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let question = post(&store, room, "a question").await;
    let answering = AnsweringRun::begin(&store, room).await;
    let stream_id = answering.stream;
    let bodies: Vec<EventBody> = vec![
        ThinkingDelta { stream_id, delta: "hm".into(), item: None }.into(),
        answering.delta("one "),
        answering.delta("two"),
        ToolUse { stream_id, tool_use_id: "t".into(), name: "look".into(), input: serde_json::json!({}) }.into(),
        answering.delta(" three"),
    ];
    let mut answer = Answer::default();
    for body in bodies {
        let history = store.history(&me(), room, 0, None, 10).await.unwrap();
        assert_eq!(history.head, store.head(&me(), room).await.unwrap());
        let [first, streaming] = &history.messages[..] else { panic!("{:?}", history.messages) };
        assert_eq!(first, &question);
        assert_eq!(
            (streaming.id, streaming.seq, streaming.status),
            (stream_id, answering.start, MessageStatus::Streaming)
        );
        assert_eq!((streaming.text.clone(), streaming.thinking.clone()), answer.texts());
        assert_eq!(streaming.parts, answer.parts);
        assert_eq!(streaming.author, Author::Agent { id: answering.run.agent, name: name("Speaker") });
        answer.apply(&body);
        answering.say(&store, vec![body]).await;
    }
    answering.finish(&store, &answer).await;
    let history = store.history(&me(), room, 0, None, 10).await.unwrap();
    let whole = &history.messages[1];
    assert_eq!((whole.id, whole.seq, whole.status), (stream_id, answering.start, MessageStatus::Complete));
    assert_eq!((whole.text.as_str(), whole.thinking.as_str()), ("one two\n\n three", "hm"));
    assert_eq!((history.head, &history.epoch), (journal(&store, room).await.len() as Seq, store.epoch()));
}

/// A reader that loads the history at any time and then follows from its head has the same events as any other.
async fn history_plus_later_events_equals_the_whole_journal(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let answering = AnsweringRun::begin(&store, room).await;
    let (stream, start) = (answering.stream, answering.start);
    let mut readers = JoinSet::new();
    for n in 0..8 {
        let store: Store = (*store).clone();
        readers.spawn(async move {
            read_until(&mut follow(&store, room, start).await, start + n * 9).await;
            let history = store.history(&me(), room, 0, None, 10).await.unwrap();
            let mut text = history.messages.last().unwrap().text.clone();
            let mut follower = follow(&store, room, history.head).await;
            for frame in read_until(&mut follower, start + 100).await {
                let event: serde_json::Value = serde_json::from_slice(frame.json()).unwrap();
                text.push_str(event["data"]["delta"].as_str().unwrap());
            }
            text
        });
    }
    let mut whole = String::new();
    for n in 0..100 {
        let delta = format!("{n} ");
        whole.push_str(&delta);
        answering.say(&store, vec![answering.delta(&delta)]).await;
    }
    while let Some(text) = within(readers.join_next()).await {
        assert_eq!(text.unwrap(), whole);
    }
    assert_eq!(store.history(&me(), room, 0, None, 10).await.unwrap().messages[0].id, stream);
}

async fn texts(store: &Store, room: RoomId, since: Seq, before: Option<Seq>, limit: u32) -> Vec<String> {
    let history = store.history(&me(), room, since, before, limit).await.unwrap();
    history.messages.into_iter().map(|message| message.text).collect()
}

async fn history_pages_have_no_gap(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut posted = Vec::new();
    for n in 0..10 {
        store.commit(append(room, vec![says("in between")])).await.unwrap();
        posted.push(post(&store, room, &n.to_string()).await);
    }
    assert_eq!(texts(&store, room, 0, None, 100).await.len(), 10);
    assert_eq!(texts(&store, room, 0, None, 3).await, ["7", "8", "9"], "the newest messages, oldest first");
    assert_eq!(texts(&store, room, 0, Some(posted[7].seq), 3).await, ["4", "5", "6"]);
    assert_eq!(texts(&store, room, posted[6].seq, None, 100).await, ["7", "8", "9"]);
    assert_eq!(texts(&store, room, posted[2].seq, Some(posted[5].seq), 100).await, ["3", "4"]);
    assert!(texts(&store, room, posted[9].seq, None, 100).await.is_empty());
    assert!(texts(&store, room, 0, None, 0).await.is_empty());
}

async fn history_pages_with_an_old_unfinished_answer_have_no_gap(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    post(&store, room, "0").await;
    let answering = AnsweringRun::begin(&store, room).await;
    answering.say(&store, vec![answering.delta("slow")]).await;
    for n in 1..=4 {
        post(&store, room, &n.to_string()).await;
    }
    let (mut before, mut read) = (None, Vec::new());
    loop {
        let page = store.history(&me(), room, 0, before, 2).await.unwrap().messages;
        assert!(page.len() <= 2, "the limit is respected");
        let Some(oldest) = page.first() else { break };
        before = Some(oldest.seq);
        read.splice(0..0, page.into_iter().map(|message| message.text));
    }
    assert_eq!(read, ["0", "slow", "1", "2", "3", "4"]);
}

/// A room of 30 MB is read in pages of a few, without a gap.
async fn m6_history_pages_are_bounded_in_bytes(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for n in 0..10 {
        post(&store, room, &format!("{n}{}", "x".repeat(3_000_000))).await;
    }
    let (mut before, mut read, mut pages) = (None, Vec::new(), 0);
    loop {
        let page = store.history(&me(), room, 0, before, 1000).await.unwrap();
        let bytes: usize = page.messages.iter().map(|message| message.text.len()).sum();
        assert!(bytes < 8_000_000, "{bytes} bytes on a page");
        pages += 1;
        before = page.messages.first().map(|message| message.seq);
        read.splice(0..0, page.messages.iter().map(|message| message.text[..1].to_owned()));
        if !page.has_more {
            break;
        }
    }
    assert_eq!((read.concat().as_str(), pages), ("0123456789", 5));
    let (mut after, mut seen) = (0, 0);
    loop {
        let page = store.page(&me(), room, &crate::scene::at(after), 10_000, true).await.unwrap();
        let bytes: usize = page.events.iter().map(|event| event.data.len()).sum();
        assert!(bytes < 8_000_000, "{bytes} bytes on a page of events");
        let Some(last) = page.events.last() else { break };
        (after, seen) = (last.seq, seen + page.events.len());
    }
    assert_eq!(seen as Seq, store.head(&me(), room).await.unwrap());
}

async fn m6_a_long_unfinished_answer_is_folded_in_pieces(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let old = post(&store, room, "old").await;
    let answering = AnsweringRun::begin(&store, room).await;
    let mut whole = String::new();
    for n in 0..6 {
        let delta = format!("{n}{} ", "y".repeat(900_000));
        whole.push_str(&delta);
        answering.say(&store, vec![answering.delta(&delta)]).await;
    }
    for _ in 0..3 {
        let deltas: Vec<EventBody> = (0..400).map(|n| answering.delta(&format!("{n},"))).collect();
        whole.push_str(&(0..400).map(|n| format!("{n},")).collect::<String>());
        answering.say(&store, deltas).await;
    }
    let history = store.history(&me(), room, 0, None, 10).await.unwrap();
    assert_eq!(history.messages.len(), 1, "the answer alone is more than a page");
    assert!(history.has_more && history.messages[0].text == whole);
    let older = store.history(&me(), room, 0, Some(history.messages[0].seq), 10).await.unwrap();
    assert_eq!((older.messages[0].id, older.has_more), (old.id, false));
}

async fn m6_a_run_receives_a_bounded_transcript(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for n in 0..5 {
        post(&store, room, &format!("{n}{}", "x".repeat(3_000_000))).await;
    }
    let last = post(&store, room, "last").await;
    let said = store.messages_before_run(&me(), room, before(last.seq), None, 200).await.unwrap();
    assert_eq!(said.iter().map(|message| &message.text[..1]).collect::<Vec<_>>(), ["2", "3", "4"], "the newest 8 MB");
}

async fn messages_before_a_run_are_posts_queued_earlier(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    for n in 0..4 {
        post(&store, room, &n.to_string()).await;
    }
    let last = post(&store, room, "last").await;
    let said = store.messages_before_run(&me(), room, before(last.seq), None, 3).await.unwrap();
    assert_eq!(said.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["1", "2", "3"]);
    let nothing = store.messages_before_run(&me(), room, before(0), None, 3).await.unwrap();
    assert!(nothing.is_empty(), "an empty room exists");
    store.delete_room(&by(&me()), room, None).await.unwrap();
    for seq in [0, last.seq] {
        let said = store.messages_before_run(&me(), room, before(seq), None, 3).await;
        assert!(matches!(said, Err(store::StoreError::NotFound)), "{said:?}");
    }
}

/// A queued run gets the answers that were stored while it waited, but not later posts.
async fn messages_before_a_run_include_later_answers(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    post(&store, room, "asked").await;
    let answering = AnsweringRun::begin(&store, room).await;
    let queued = TestRun::queued(&store, room).await;
    let queued_seq = store.run(&me(), queued.id).await.unwrap().queued_seq;
    post(&store, room, "later").await;
    let mut answer = Answer::default();
    answer.apply(&answering.delta("answered"));
    let said = |limit| {
        let store = &store;
        async move {
            let said = store.messages_before_run(&me(), room, before(queued_seq), None, limit).await.unwrap();
            said.into_iter().map(|message| message.text).collect::<Vec<_>>()
        }
    };
    assert_eq!(said(10).await, ["asked"], "unfinished answers are not included");
    answering.finish(&store, &answer).await;
    post(&store, room, "latest").await;
    assert_eq!(said(10).await, ["asked", "answered"]);
    assert_eq!(said(1).await, ["answered"], "the newest");
    // A session knows posts up to one seq and answers that had ended at another.
    let head = store.room(&me(), room).await.unwrap().head;
    let knows =
        |heard_seq, spoke_seq| ProviderSessionRecord { heard_seq, spoke_seq, ..ProviderSessionRecord::new("s") };
    for (session, unheard) in [
        (knows(0, None), &["asked", "answered"][..]),
        (knows(queued_seq, None), &["answered"]),
        (knows(0, Some(head)), &["asked"]),
        (knows(queued_seq, Some(head)), &[]),
    ] {
        let said = store.messages_before_run(&me(), room, before(queued_seq), Some(&session), 10).await.unwrap();
        assert_eq!(said.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), unheard, "{session:?}");
    }
}

fn texts_of(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.text.as_str()).collect()
}

/// Two agents answer at the same time: neither knows the other's answer, whichever began or ended first.
async fn a_session_misses_answers_that_ended_after_its_turn_began(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let asked = post(&store, room, "asked").await;
    let runs = TestRun::queued_in_one_cell(&store, room, 2).await;
    let mut answering = Vec::new();
    for (run, lease) in runs.into_iter().zip(claim(&store, "w").await) {
        let run = TestRun { id: lease.run_id, ..run };
        answering.push(AnsweringRun::start(&store, room, run, lease).await);
    }
    // The head when the messages for both turns were read.
    let head = answering[0].start - 1;
    post(&store, room, "between").await;
    for (answering, text) in answering.iter().zip(["first", "second"]) {
        let mut answer = Answer::default();
        answer.apply(&answering.delta(text));
        answering.finish(&store, &answer).await;
    }
    let next = post(&store, room, "next").await;
    for (answering, missed) in answering.iter().zip([["between", "second"], ["first", "between"]]) {
        let session = ProviderSessionRecord {
            heard_seq: asked.seq + 1,
            spoke_seq: Some(head),
            answer_seq: Some(answering.start),
            ..ProviderSessionRecord::new("s")
        };
        let mut missed = missed.to_vec();
        missed.sort_unstable();
        let range = TranscriptRange { posts_before: next.seq, answers_until: next.seq };
        let read = store.messages_before_run(&me(), room, range, Some(&session), 10).await.unwrap();
        let mut read = texts_of(&read);
        read.sort_unstable();
        assert_eq!(read, missed);
    }
    // A turn that began while both were answering.
    let session = ProviderSessionRecord {
        heard_seq: next.seq,
        spoke_seq: Some(answering[1].start + 1),
        ..ProviderSessionRecord::new("s")
    };
    let range = TranscriptRange { posts_before: next.seq, answers_until: next.seq };
    let read = store.messages_before_run(&me(), room, range, Some(&session), 10).await.unwrap();
    assert_eq!(texts_of(&read), ["first", "second"], "answers that began before it are not lost");
    let until = TranscriptRange { posts_before: next.seq, answers_until: head };
    let read = store.messages_before_run(&me(), room, until, None, 10).await.unwrap();
    assert_eq!(texts_of(&read), ["asked", "between"], "no answer had ended then");
}

/// Rows from before the column `ended_seq`, when runs of a room executed one after another.
async fn answers_stored_by_earlier_versions_are_known_by_where_they_begin(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut starts = Vec::new();
    for text in ["old", "older"] {
        let answering = AnsweringRun::begin(&store, room).await;
        let whole = Message { run_id: Some(answering.run.id), ..message(room, text) };
        let mut commit = answering.run.ending(room, held(&answering.lease));
        commit.changes.push(RowChange::PutMessage { message: whole, seq: SeqRef::Known(answering.start) });
        store.commit(commit).await.unwrap();
        starts.push(answering.start);
    }
    for (spoke_seq, missed) in
        [(None, vec!["old", "older"]), (Some(starts[0]), vec!["older"]), (Some(starts[1]), vec![])]
    {
        let session = ProviderSessionRecord { heard_seq: 1, spoke_seq, ..ProviderSessionRecord::new("s") };
        let read = store.messages_before_run(&me(), room, before(100), Some(&session), 10).await.unwrap();
        assert_eq!(texts_of(&read), missed);
    }
}

async fn a_message_is_found_by_its_id(database: TestDatabase) {
    let store = database.open().await;
    let (room, other) = (room(&store).await, room(&store).await);
    let posted = post(&store, room, "here").await;
    assert_eq!(store.message(&me(), room, posted.id).await.unwrap(), posted);
    assert_eq!(store.room_of_message(&me(), posted.id).await.unwrap(), room);
    assert!(matches!(store.message(&me(), other, posted.id).await, Err(store::StoreError::NotFound)));
    assert!(matches!(store.room_of_message(&me(), MessageId::generate()).await, Err(store::StoreError::NotFound)));
}

async fn events_of_one_run_are_read_in_order(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let answering = AnsweringRun::begin(&store, room).await;
    store.commit(append(room, vec![says("someone else")])).await.unwrap();
    answering.say(&store, vec![answering.delta("a"), answering.delta("b")]).await;
    let lease = &answering.lease;
    let events = store.run_events(room, lease.run_id, lease.queued_seq).await.unwrap();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 4, 5]);
    assert!(events.iter().all(|event| event.run_id == Some(lease.run_id)));
}

async fn sessions_are_stored_per_room_agent_and_provider(database: TestDatabase) {
    let store = database.open().await;
    let (room, other) = (room(&store).await, room(&store).await);
    let agent = TestRun::new().agent;
    let put = |room, session: &ProviderSessionRecord| Commit {
        changes: vec![RowChange::PutSession { agent_id: agent, provider: "p".into(), session: session.clone() }],
        ..append(room, Vec::new())
    };
    assert_eq!(store.provider_session(room, agent, "p").await.unwrap(), None);
    let first = ProviderSessionRecord::new("first");
    assert_eq!((first.heard_seq, first.spoke_seq), (0, None), "a new session knows nothing");
    let knows = |heard_seq, spoke_seq| ProviderSessionRecord { heard_seq, spoke_seq, ..first.clone() };
    for session in
        [first.clone(), knows(7, None), knows(7, Some(9)), knows(8, None), ProviderSessionRecord::new("second")]
    {
        store.commit(put(room, &session)).await.unwrap();
        assert_eq!(store.provider_session(room, agent, "p").await.unwrap(), Some(session));
    }
    assert_eq!(store.provider_session(other, agent, "p").await.unwrap(), None);
    assert_eq!(store.provider_session(room, agent, "q").await.unwrap(), None);
    assert_eq!(store.provider_session(room, TestRun::new().agent, "p").await.unwrap(), None);
}
