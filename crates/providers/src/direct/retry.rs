//! The delay before a retry. Pure: the random number is an argument.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// `attempt` starts at 1; `jitter` is from 0 to 1 and spreads the retries of many turns. The delay is never shorter
/// than the vendor's `Retry-After`.
pub fn delay(attempt: u32, retry_after: Option<Duration>, jitter: f64) -> Duration {
    let jitter = jitter.clamp(0.0, 1.0);
    match retry_after {
        Some(wait) => wait + (wait / 10).max(Duration::from_millis(100)).mul_f64(jitter),
        None => {
            let doubled = FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST);
            doubled.mul_f64(0.5 + jitter / 2.0)
        }
    }
}

/// Parses `Retry-After` in seconds, or OpenAI's `retry-after-ms`. Dates are ignored, because the clocks may differ.
pub fn retry_after(seconds: Option<&str>, millis: Option<&str>) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| (0.0..=604_800_000.0).contains(number));
    let millis = millis.and_then(number).map(|millis| Duration::from_secs_f64(millis / 1000.0));
    millis.or_else(|| seconds.and_then(number).map(Duration::from_secs_f64))
}

#[cfg(test)]
mod tests {
    use super::{delay, retry_after};
    use std::time::Duration;

    #[test]
    fn delay_grows_to_a_limit_and_varies() {
        for attempt in 1..40 {
            let (least, most) = (delay(attempt, None, 0.0), delay(attempt, None, 1.0));
            assert!(least * 2 == most && most <= Duration::from_secs(30), "{attempt}: {least:?} {most:?}");
            assert!(delay(attempt + 1, None, 0.0) >= least);
        }
        assert_eq!(delay(1, None, 1.0), Duration::from_millis(500));
    }

    #[test]
    fn delay_is_not_shorter_than_retry_after() {
        let asked = Duration::from_secs(20);
        assert_eq!(delay(1, Some(asked), 0.0), asked);
        assert!(delay(9, Some(asked), 1.0) <= Duration::from_secs(22));
        assert!(delay(1, Some(Duration::ZERO), 1.0) <= Duration::from_millis(100));
    }

    #[test]
    fn parses_retry_headers() {
        assert_eq!(retry_after(Some("2"), None), Some(Duration::from_secs(2)));
        assert_eq!(retry_after(Some("2"), Some("150")), Some(Duration::from_millis(150)));
        for odd in ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "NaN", "inf", ""] {
            assert_eq!(retry_after(Some(odd), None), None, "{odd}");
        }
    }
}
