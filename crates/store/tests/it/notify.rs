//! Two servers on one PostgreSQL: each is notified of the other's changes, and polls while notifications are lost.

use crate::scene::{TestRun, append, by, follow, me, name, read_until, renaming, room, says, within};
use domain::{
    agent::AgentSpec,
    ids::RoomId,
    position::Seq,
    room::RoomPolicy,
    signal::{Signal, SignalBody},
};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, postgres::PgConnectOptions};
use std::{
    collections::BTreeSet,
    str::FromStr as _,
    time::{Duration, Instant},
};
use store::{
    Backend, Store,
    journal::{Batch, Commit, Follower, RowChange},
    notify::{OwnerWatch, WatchedChanges},
};
use testkit::database::TestDatabase;
use tokio::time::timeout;

/// Half of the time in which a server polls without notifications: nothing but a notification is that fast.
const NOTIFIED: Duration = Duration::from_millis(250);

/// A server without notifications polls twice a second. The rest is for a slow machine.
const POLLED: Duration = Duration::from_secs(5);

/// A connection to another database of the same server.
async fn administrator(database: &TestDatabase) -> PgConnection {
    let Backend::Postgres { url } = database.backend() else { panic!("not PostgreSQL") };
    let options = PgConnectOptions::from_str(&url).unwrap().database("postgres");
    PgConnection::connect_with(&options).await.unwrap()
}

/// Breaks the connections for notifications, and prevents new ones.
async fn cut_notifications(administrator: &mut PgConnection, database: &TestDatabase) {
    let name = database.name();
    for sql in [
        format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"),
        format!(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
             WHERE datname = '{name}' AND application_name = 'greenroom-notify'"
        ),
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *administrator).await.unwrap();
    }
}

/// Commits one event, and returns how long a follower that waits takes to read it afterwards.
async fn delay(writer: &Store, follower: &mut Follower) -> Duration {
    let (room, next): (RoomId, Seq) = (follower.room(), follower.seq() + 1);
    // Only a notification may wake it: it is at the end, and an earlier notification is used up.
    assert!(matches!(follower.next().await.unwrap(), Batch::CaughtUp));
    let notifier = follower.notifier().clone();
    while timeout(Duration::from_millis(5), notifier.notified()).await.is_ok() {}
    writer.commit(append(room, vec![says("new")])).await.unwrap();
    let committed = Instant::now();
    within(notifier.notified()).await;
    read_until(follower, next).await;
    committed.elapsed()
}

/// Opens some connections now, because later the database accepts no new ones.
async fn open_connections(store: &Store, room: RoomId) {
    let head = || async { store.head(&me(), room).await.unwrap() };
    tokio::join!(head(), head(), head(), head());
}

async fn median_delay(writer: &Store, follower: &mut Follower) -> Duration {
    let mut delays = Vec::new();
    for _ in 0..31 {
        delays.push(delay(writer, follower).await);
    }
    delays.sort_unstable();
    delays[delays.len() / 2]
}

/// Takes changes until they are what is expected.
async fn until(watch: &OwnerWatch, mut expected: impl FnMut(&WatchedChanges) -> bool) {
    within(async {
        loop {
            watch.changed().await;
            if expected(&watch.take_changes()) {
                return;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn invariant_13_hints_are_hints_another_server_is_notified_within_milliseconds() {
    let database = TestDatabase::postgres();
    let (one, two) = (database.open().await, database.open().await);
    let room = room(&one).await;
    let same = median_delay(&one, &mut follow(&one, room, 0).await).await;
    let head = one.head(&me(), room).await.unwrap();
    let other = median_delay(&one, &mut follow(&two, room, head).await).await;
    println!("median delay of a reader: {same:?} on the same server, {other:?} on another one");
    assert!(other < NOTIFIED, "{other:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn another_server_is_notified_of_lists_the_queue_and_signals() {
    let database = TestDatabase::postgres();
    let (one, two) = (database.open().await, database.open().await);
    let (mut watch, signals, room) = (two.watch(&me()), two.watch_run_signals(), room(&one).await);
    until(&watch, |changes| changes.room_list).await;
    watch.set_rooms(BTreeSet::from([room]));
    one.commit(append(room, vec![says("new")])).await.unwrap();
    until(&watch, |changes| changes.rooms == BTreeSet::from([room])).await;
    one.commit(renaming(room, &name("new name"), &RoomPolicy::default(), None)).await.unwrap();
    until(&watch, |changes| changes.room_list).await;
    one.create_agent(&by(&me()), AgentSpec::new(name("new"), "scripted"), None).await.unwrap();
    until(&watch, |changes| changes.agents).await;
    let run = TestRun::queued(&one, room).await;
    within(two.queue_notify().notified()).await;
    let signal = Signal::new(run.id, SignalBody::ForgetTool { tool: "Bash".into() });
    let changes = vec![RowChange::StoreSignal { signal }];
    one.commit(Commit { changes, ..append(room, Vec::new()) }).await.unwrap();
    within(signals.changed()).await;
    assert_eq!((signals.take().runs, signals.take().runs), (BTreeSet::from([run.id]), BTreeSet::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn invariant_13_hints_are_hints_without_notifications_everything_is_polled() {
    let database = TestDatabase::postgres();
    let (one, two) = (database.open().await, database.open().await);
    let room = room(&one).await;
    let mut follower = follow(&two, room, 0).await;
    delay(&one, &mut follower).await;
    let mut administrator = administrator(&database).await;
    tokio::join!(open_connections(&one, room), open_connections(&two, room));
    cut_notifications(&mut administrator, &database).await;
    let late = delay(&one, &mut follower).await;
    let polled = delay(&one, &mut follower).await;
    println!("delay of a reader on another server: {late:?} when notifications break, then {polled:?}");
    assert!(late.max(polled) < POLLED, "{late:?}, {polled:?}");

    let (watch, signals) = (two.watch(&me()), two.watch_run_signals());
    // The first poll of a new watch reports every list.
    let (mut agents, mut skills, mut rooms) = (false, false, false);
    until(&watch, |changes| {
        agents |= changes.agents;
        skills |= changes.skills;
        rooms |= changes.room_list;
        agents && skills && rooms
    })
    .await;
    one.create_agent(&by(&me()), AgentSpec::new(name("new"), "scripted"), None).await.unwrap();
    until(&watch, |changes| changes.agents && !changes.skills).await;
    within(signals.changed()).await;
    assert!(signals.take().any);
    TestRun::queued(&one, room).await;
    within(two.queue_notify().notified()).await;

    let allow = format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", database.name());
    sqlx::raw_sql(AssertSqlSafe(allow)).execute(&mut administrator).await.unwrap();
    read_until(&mut follower, 4).await;
    within(async { while median_delay(&one, &mut follower).await >= NOTIFIED {} }).await;
    administrator.close().await.unwrap();
}
