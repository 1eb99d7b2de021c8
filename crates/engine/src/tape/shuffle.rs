//! A shuffle that a seed decides: the same seed gives the same order, on every machine.

/// Shuffles in place (Fisher and Yates) with numbers of SplitMix64.
pub(super) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..items.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bound = last as u64 + 1;
        items.swap(last, usize::try_from(mixed(state) % bound).unwrap_or(0));
    }
}

/// Combines a seed with what it should depend on.
pub(super) fn combined(seed: u32, with: u64) -> u64 {
    mixed(u64::from(seed) ^ mixed(with))
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::{combined, shuffle};

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let shuffled = |seed| {
            let mut items: Vec<u8> = (0..8).collect();
            shuffle(&mut items, combined(seed, 3));
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        let orders: std::collections::BTreeSet<_> = (0..100).map(shuffled).collect();
        assert!(orders.len() > 90, "{} orders", orders.len());
        let mut sorted = shuffled(5);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..8));
    }
}
