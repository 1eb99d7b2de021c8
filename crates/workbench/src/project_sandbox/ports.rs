//! The ports that programs in a sandbox listen on.

use super::SandboxLease;
use sandbox::{CommandEnd, CommandExit, CommandSpec, IsolationTier, OutputLimits, SandboxError};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

const LIMITS: OutputLimits =
    OutputLimits { wall: Duration::from_secs(5), total_bytes: 1 << 20, head_bytes: 1 << 20, tail_bytes: 0 };
/// The state of a listening socket, see `include/net/tcp_states.h` of Linux.
const LISTENING: &str = "0A";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListeningPort {
    pub port: u16,
    pub address: IpAddr,
}

impl SandboxLease {
    /// Whether its loopback is its own. Else a port inside is a port of this machine.
    pub fn has_own_network(&self) -> bool {
        match self.isolation().tier {
            IsolationTier::Native | IsolationTier::Docker => true,
            IsolationTier::Landlock | IsolationTier::None => false,
        }
    }

    /// The TCP ports on which something inside listens, each once.
    pub async fn listening_ports(&self) -> Result<Vec<ListeningPort>, SandboxError> {
        let command = CommandSpec::new(["cat", "/proc/net/tcp", "/proc/net/tcp6"]);
        let captured = self.capture(command, LIMITS).await?;
        match captured.end {
            CommandEnd::Exited(CommandExit::SandboxEnded) => Err(SandboxError::Ended),
            // Without IPv6 one of the files is missing.
            _ => Ok(parse(&captured.stdout.text())),
        }
    }
}

fn parse(tables: &str) -> Vec<ListeningPort> {
    let listening = tables.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let (address, port) = local.split_once(':').filter(|_| state == LISTENING)?;
        Some((u16::from_str_radix(port, 16).ok()?, parse_address(address)?))
    });
    // A server that listens for both versions has two rows.
    let by_port: BTreeMap<u16, IpAddr> = listening.collect();
    by_port.into_iter().map(|(port, address)| ListeningPort { port, address }).collect()
}

/// Words of 32 bits in the byte order of the machine.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ListeningPort, parse};

    #[test]
    #[cfg(target_endian = "little")]
    fn only_listening_sockets_are_ports() {
        let tables = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
             \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000\n\
             \x20  1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000\n\
             \x20  2: 00000000:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000\n\
             \x20 sl  local_address                         remote_address                        st\n\
             \x20  0: 00000000000000000000000001000000:1435 00000000000000000000000000000000:0000 0A 0 0 0\n\
             nonsense\n";
        let port = |port, address: &str| ListeningPort { port, address: address.parse().unwrap() };
        assert_eq!(parse(tables), [port(3000, "0.0.0.0"), port(5173, "::1"), port(8080, "127.0.0.1")]);
    }
}
