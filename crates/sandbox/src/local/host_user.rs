//! The user of this machine that commands run as when the server is root.

use std::fs;

/// Far above what systems give to people, services and containers by default.
const PREFERRED: u32 = 210_000;
/// In a container with few users.
const FALLBACK: u32 = 65_000;

/// `None` if the server is not root: commands then run as the server's user.
pub fn choose() -> Option<u32> {
    let map = |path: &str| fs::read_to_string(path).unwrap_or_default();
    nix::unistd::geteuid().is_root().then(|| find(&map("/proc/self/uid_map"), &map("/proc/self/gid_map")))
}

/// Only a user that exists in our own user namespace can be mapped into another.
fn find(users: &str, groups: &str) -> u32 {
    let is_mapped = |id: &u32| contains(users, *id) && contains(groups, *id);
    [PREFERRED, FALLBACK].into_iter().find(is_mapped).unwrap_or_else(|| {
        let highest = (1..FALLBACK).rev().find(is_mapped);
        highest.unwrap_or(FALLBACK)
    })
}

fn contains(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().filter_map(|field| field.parse::<u64>().ok());
        match (fields.next(), fields.next(), fields.next()) {
            (Some(inside), Some(_), Some(count)) => (inside..inside + count).contains(&u64::from(id)),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_user_is_one_of_the_map() {
        let all = "         0          0 4294967295\n";
        assert_eq!(find(all, all), 210_000);
        let container = "0 1000 1\n1 100000 65536\n";
        assert_eq!(find(container, container), 65_000);
        assert_eq!(find("0 1000 1\n1 100000 999\n", container), 999);
        assert_eq!(find(all, "0 0 100\n"), 99);
    }
}
