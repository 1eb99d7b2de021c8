//! Tickets: a secret for a URL, where a client can send neither a header nor a body. In memory only, by its hash; bound to
//! the actor that requested it.
//!
//! A ticket starts one run. Once it has, it is bound to that request and that run: a browser's EventSource that
//! reconnects sends the same URL again, and must get the rest of the answer instead of another run.

use super::token::{self, TokenGenerationError, TokenSecret};
use crate::{extract::Fingerprint, shares::UserKey};
use domain::{actor::Actor, ids::RunId};
use std::{
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// How long a ticket can be used for the first time.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(60);
/// How long after its last use a client can reconnect with it.
const RECONNECT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// How many tickets of one actor, and of all, are not used yet; a new one replaces the oldest.
const MAX_UNUSED_OF_ACTOR: usize = 20;
const MAX_UNUSED: usize = 2000;
/// How many used tickets are kept for reconnects; another one replaces the one that was not used for the longest.
const MAX_USED_OF_ACTOR: usize = 100;
const MAX_USED: usize = 5000;

struct Ticket {
    hash: [u8; 32],
    actor: Actor,
    ends: Instant,
    usage: Option<TicketUse>,
}

struct TicketUse {
    request: Fingerprint,
    run: Option<RunId>,
    is_finished: bool,
}

/// The ticket of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RedeemedTicket {
    hash: [u8; 32],
    /// The run that an earlier request with this ticket started.
    pub run: Option<RunId>,
    /// The whole stream of that run was sent.
    pub is_finished: bool,
}

impl RedeemedTicket {
    /// The key under which the message of this ticket is stored: even two requests at the same time store it once.
    pub fn idempotency_key(&self) -> String {
        let mut key = "ticket-".to_owned();
        for byte in self.hash {
            // Writing to a string does not fail.
            write!(key, "{byte:02x}").unwrap_or_default();
        }
        key
    }
}

/// Sorted by last use, oldest first.
#[derive(Default)]
pub struct Tickets(Mutex<Vec<Ticket>>);

impl Tickets {
    pub fn create(&self, actor: &Actor) -> Result<TokenSecret, TokenGenerationError> {
        let (secret, hash) = token::generate()?;
        let mut tickets = self.valid();
        let ticket = Ticket { hash, actor: actor.clone(), ends: Instant::now() + TICKET_LIFETIME, usage: None };
        make_room(&mut tickets, &ticket, MAX_UNUSED_OF_ACTOR, MAX_UNUSED);
        tickets.push(ticket);
        Ok(secret)
    }

    /// Returns the actor of a ticket, if it was not used for another request.
    pub fn redeem(&self, secret: &[u8], request: Fingerprint) -> Option<(Actor, RedeemedTicket)> {
        let hash = token::hash(secret);
        let mut tickets = self.valid();
        let at = position(&tickets, &hash)?;
        if tickets[at].usage.as_ref().is_some_and(|usage| usage.request != request) {
            return None;
        }
        let mut ticket = tickets.remove(at);
        let usage = ticket.usage.get_or_insert(TicketUse { request, run: None, is_finished: false });
        let redeemed = RedeemedTicket { hash, run: usage.run, is_finished: usage.is_finished };
        // Until it has a run, it expires as if it was not used.
        if redeemed.run.is_some() {
            ticket.ends = Instant::now() + RECONNECT_LIFETIME;
        }
        let actor = ticket.actor.clone();
        make_room(&mut tickets, &ticket, MAX_USED_OF_ACTOR, MAX_USED);
        tickets.push(ticket);
        Some((actor, redeemed))
    }

    /// From now on the ticket continues this run.
    pub fn set_run(&self, ticket: &RedeemedTicket, run: RunId) {
        self.change(ticket, |ends, usage| {
            usage.run = Some(run);
            *ends = Instant::now() + RECONNECT_LIFETIME;
        });
    }

    /// The stream of the ticket's run was sent to its end.
    pub fn finish(&self, ticket: &RedeemedTicket) {
        self.change(ticket, |_, usage| usage.is_finished = true);
    }

    fn change(&self, ticket: &RedeemedTicket, change: impl FnOnce(&mut Instant, &mut TicketUse)) {
        let mut tickets = self.valid();
        if let Some(at) = position(&tickets, &ticket.hash)
            && let Ticket { ends, usage: Some(usage), .. } = &mut tickets[at]
        {
            change(ends, usage);
        }
    }

    fn valid(&self) -> MutexGuard<'_, Vec<Ticket>> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        tickets.retain(|ticket| ticket.ends > now);
        tickets
    }
}

fn position(tickets: &[Ticket], hash: &[u8; 32]) -> Option<usize> {
    tickets.iter().position(|ticket| token::is_same(&ticket.hash, hash))
}

/// Removes a ticket if there are as many of the kind of `new`, used or not, as there may be.
fn make_room(tickets: &mut Vec<Ticket>, new: &Ticket, max_of_actor: usize, max: usize) {
    let is_same_kind = |ticket: &&Ticket| ticket.usage.is_some() == new.usage.is_some();
    let is_own = |ticket: &Ticket| is_same_kind(&ticket) && UserKey::of(&ticket.actor) == UserKey::of(&new.actor);
    let own = tickets.iter().filter(|ticket| is_own(ticket)).count();
    let replaced = match (own >= max_of_actor, tickets.iter().filter(is_same_kind).count() >= max) {
        (true, _) => tickets.iter().position(is_own),
        (false, true) => tickets.iter().position(|ticket| is_same_kind(&ticket)),
        (false, false) => None,
    };
    if let Some(at) = replaced {
        tickets.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_UNUSED_OF_ACTOR, MAX_USED_OF_ACTOR, RECONNECT_LIFETIME, TICKET_LIFETIME, Tickets};
    use crate::{auth::token::TokenSecret, extract::Fingerprint};
    use domain::{actor::Actor, ids::RunId, name::Name, owner::Owner};

    const FIRST: Fingerprint = Fingerprint([1; 32]);
    const OTHER: Fingerprint = Fingerprint([2; 32]);

    fn ada() -> Actor {
        Actor { workspace: Owner::new(Name::parse("ada").unwrap()), ..Actor::local() }
    }

    fn is_valid(tickets: &Tickets, ticket: &TokenSecret) -> bool {
        tickets.redeem(ticket.reveal().as_bytes(), FIRST).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn m4_a_ticket_is_first_used_within_a_minute_by_its_actor() {
        let (tickets, me) = (Tickets::default(), Actor::local());
        let (mine, hers) = (tickets.create(&me).unwrap(), tickets.create(&ada()).unwrap());
        assert!(tickets.redeem(b"grm_wrong", FIRST).is_none());
        let (actor, redeemed) = tickets.redeem(mine.reveal().as_bytes(), FIRST).unwrap();
        assert_eq!(actor, me);
        let refused = tickets.create(&me).unwrap();
        assert!(is_valid(&tickets, &refused));
        let many: Vec<_> = (0..MAX_UNUSED_OF_ACTOR + 5).map(|_| tickets.create(&me).unwrap()).collect();
        let valid = many.iter().filter(|ticket| is_valid(&tickets, ticket)).count();
        assert_eq!(valid, MAX_UNUSED_OF_ACTOR, "the oldest are replaced");
        assert!(is_valid(&tickets, &mine), "a used one is not replaced by new ones");
        assert_eq!(tickets.redeem(hers.reveal().as_bytes(), FIRST).unwrap().0, ada(), "another's stay");
        tickets.set_run(&redeemed, RunId::generate());
        let late = tickets.create(&me).unwrap();
        tokio::time::advance(TICKET_LIFETIME).await;
        assert!(!is_valid(&tickets, &late));
        assert!(!is_valid(&tickets, &refused), "a request that started no run does not prolong it");
        assert!(is_valid(&tickets, &mine), "one with a run lasts longer");
    }

    #[tokio::test(start_paused = true)]
    async fn m4_a_used_ticket_continues_its_run_and_nothing_else() {
        let (tickets, me, run) = (Tickets::default(), Actor::local(), RunId::generate());
        let ticket = tickets.create(&me).unwrap();
        let (_, redeemed) = tickets.redeem(ticket.reveal().as_bytes(), FIRST).unwrap();
        assert_eq!((redeemed.run, redeemed.is_finished), (None, false));
        assert!(redeemed.idempotency_key().len() == 71 && !redeemed.idempotency_key().contains(ticket.reveal()));
        tickets.set_run(&redeemed, run);
        assert!(tickets.redeem(ticket.reveal().as_bytes(), OTHER).is_none(), "another request");
        assert_eq!(tickets.redeem(ticket.reveal().as_bytes(), FIRST).unwrap().1.run, Some(run));
        tickets.finish(&redeemed);
        assert!(tickets.redeem(ticket.reveal().as_bytes(), FIRST).unwrap().1.is_finished);
        for _ in 0..MAX_USED_OF_ACTOR {
            assert!(is_valid(&tickets, &tickets.create(&me).unwrap()));
        }
        assert!(!is_valid(&tickets, &ticket), "the one that was not used for the longest is replaced");
        let last = tickets.create(&me).unwrap();
        assert!(is_valid(&tickets, &last));
        tokio::time::advance(RECONNECT_LIFETIME).await;
        assert!(!is_valid(&tickets, &last));
    }
}
