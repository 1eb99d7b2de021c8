//! One-time tickets: a secret for a URL, where a client can send neither a header nor a body. In memory only, by its hash;
//! bound to the actor that requested it.

use super::token::{self, TokenGenerationError, TokenSecret};
use domain::actor::Actor;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// How long a ticket is valid.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(60);
/// How many tickets are valid at once, of one actor and of all; a new one replaces the oldest.
const MAX_OF_ACTOR: usize = 20;
const MAX_TICKETS: usize = 2000;

struct Ticket {
    hash: [u8; 32],
    actor: Actor,
    ends: Instant,
}

#[derive(Default)]
pub struct Tickets(Mutex<Vec<Ticket>>);

impl Tickets {
    pub fn create(&self, actor: &Actor) -> Result<TokenSecret, TokenGenerationError> {
        let (secret, hash) = token::generate()?;
        let mut tickets = self.valid();
        let own = tickets.iter().filter(|ticket| ticket.actor == *actor).count();
        let replaced = match (own >= MAX_OF_ACTOR, tickets.len() >= MAX_TICKETS) {
            (true, _) => tickets.iter().position(|ticket| ticket.actor == *actor),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(at) = replaced {
            tickets.remove(at);
        }
        tickets.push(Ticket { hash, actor: actor.clone(), ends: Instant::now() + TICKET_LIFETIME });
        Ok(secret)
    }

    /// Uses a ticket up and returns its actor.
    pub fn redeem(&self, secret: &[u8]) -> Option<Actor> {
        let hash = token::hash(secret);
        let mut tickets = self.valid();
        let at = tickets.iter().position(|ticket| token::is_same(&ticket.hash, &hash))?;
        Some(tickets.remove(at).actor)
    }

    fn valid(&self) -> MutexGuard<'_, Vec<Ticket>> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        tickets.retain(|ticket| ticket.ends > now);
        tickets
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_OF_ACTOR, TICKET_LIFETIME, Tickets};
    use domain::{actor::Actor, name::Name, owner::Owner};

    #[tokio::test(start_paused = true)]
    async fn m4_a_ticket_works_once_and_for_a_minute() {
        let (tickets, me) = (Tickets::default(), Actor::local());
        let ada = Actor { workspace: Owner::new(Name::parse("ada").unwrap()), ..Actor::local() };
        let (mine, hers) = (tickets.create(&me).unwrap(), tickets.create(&ada).unwrap());
        assert_eq!(tickets.redeem(b"grm_wrong"), None);
        assert_eq!(tickets.redeem(mine.reveal().as_bytes()), Some(me.clone()));
        assert_eq!(tickets.redeem(mine.reveal().as_bytes()), None, "it is used up");
        let many: Vec<_> = (0..MAX_OF_ACTOR + 5).map(|_| tickets.create(&me).unwrap()).collect();
        let valid = many.iter().filter(|ticket| tickets.redeem(ticket.reveal().as_bytes()).is_some()).count();
        assert_eq!(valid, MAX_OF_ACTOR, "the oldest are replaced");
        assert_eq!(tickets.redeem(hers.reveal().as_bytes()), Some(ada), "another's stay");
        let late = tickets.create(&me).unwrap();
        tokio::time::advance(TICKET_LIFETIME).await;
        assert_eq!(tickets.redeem(late.reveal().as_bytes()), None);
    }
}
