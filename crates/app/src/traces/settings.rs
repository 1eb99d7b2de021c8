//! The standard variables of OpenTelemetry that apply to traces. Values may hold keys, so they are not shown.

use crate::config::Environment;
use anyhow::{Context as _, bail};
use engine::traces::TraceSampling;
use std::{ffi::OsStr, time::Duration};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_SERVICE: &str = "greenroom";

pub(super) struct TraceSettings {
    /// May contain a key.
    pub endpoint: String,
    pub headers: Vec<(String, String)>,
    pub timeout: Duration,
    pub resource: Vec<(String, String)>,
    pub sampling: TraceSampling,
    /// Whether prompts, answers, and the input and output of tools are in the spans.
    pub with_content: bool,
}

impl TraceSettings {
    /// Returns `None` if there is no endpoint, or if traces are switched off.
    pub fn read(environment: &Environment) -> anyhow::Result<Option<Self>> {
        let value = |name: &str| {
            let value = environment.get(name).and_then(OsStr::to_str).map(str::trim);
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        };
        let of_traces = |name: &str| {
            value(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}")).or_else(|| value(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let is_true = |name: &str| value(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        // The endpoint for all kinds of data is a base; that for traces is the address itself.
        let common =
            value("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| format!("{}/v1/traces", base.trim_end_matches('/')));
        let Some(endpoint) = value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or(common) else { return Ok(None) };
        if is_true("OTEL_SDK_DISABLED") || value("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter == "none") {
            return Ok(None);
        }
        let is_http = reqwest::Url::parse(&endpoint).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            bail!("OTEL_EXPORTER_OTLP_ENDPOINT must be an address that begins with http:// or https://");
        }
        if let Some(protocol) = of_traces("PROTOCOL").filter(|protocol| protocol != "http/protobuf") {
            bail!("OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}; this server exports http/protobuf only");
        }
        let timeout = match of_traces("TIMEOUT") {
            Some(millis) => {
                Duration::from_millis(millis.parse().context("OTEL_EXPORTER_OTLP_TIMEOUT: a number of milliseconds")?)
            }
            None => DEFAULT_TIMEOUT,
        };
        let mut resource = pairs(&value("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default())
            .context("OTEL_RESOURCE_ATTRIBUTES: use key=value pairs, separated by commas")?;
        let service = value("OTEL_SERVICE_NAME");
        if service.is_some() {
            resource.retain(|(key, _)| key != "service.name");
        }
        if !resource.iter().any(|(key, _)| key == "service.name") {
            resource.push(("service.name".to_owned(), service.unwrap_or_else(|| DEFAULT_SERVICE.to_owned())));
        }
        resource.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        let headers = pairs(&of_traces("HEADERS").unwrap_or_default())
            .context("OTEL_EXPORTER_OTLP_HEADERS: use name=value pairs, separated by commas")?;
        Ok(Some(Self {
            endpoint,
            headers,
            timeout,
            resource,
            sampling: sampling(value("OTEL_TRACES_SAMPLER").as_deref(), value("OTEL_TRACES_SAMPLER_ARG").as_deref())?,
            with_content: is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        }))
    }

    /// The endpoint without user, password and query.
    pub fn endpoint_without_secrets(&self) -> String {
        reqwest::Url::parse(&self.endpoint)
            .map_or_else(|_| String::new(), |url| format!("{}{}", url.origin().ascii_serialization(), url.path()))
    }
}

fn sampling(sampler: Option<&str>, argument: Option<&str>) -> anyhow::Result<TraceSampling> {
    let ratio = || -> anyhow::Result<f64> {
        let ratio: f64 = argument.unwrap_or("1").parse().context("OTEL_TRACES_SAMPLER_ARG: a number from 0 to 1")?;
        match (0.0..=1.0).contains(&ratio) {
            true => Ok(ratio),
            false => bail!("OTEL_TRACES_SAMPLER_ARG: a number from 0 to 1"),
        }
    };
    let sampler = sampler.unwrap_or("parentbased_always_on");
    let (follows_caller, kind) = match sampler.strip_prefix("parentbased_") {
        Some(kind) => (true, kind),
        None => (false, sampler),
    };
    let ratio = match kind {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => ratio()?,
        _ => bail!(
            "OTEL_TRACES_SAMPLER: use always_on, always_off or traceidratio, each also with parentbased_ before it"
        ),
    };
    Ok(TraceSampling { ratio, follows_caller })
}

/// `key=value` pairs; values are percent-encoded.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=')?;
            Some((key.trim().to_owned(), percent_decoded(value.trim())?))
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::TraceSettings;
    use crate::config::Environment;

    fn read(variables: &[(&str, &str)]) -> anyhow::Result<Option<TraceSettings>> {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        TraceSettings::read(&Environment::new(variables))
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");

    #[test]
    fn traces_are_off_without_an_endpoint_or_if_they_are_switched_off() {
        assert!(read(&[]).unwrap().is_none());
        assert!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
        assert!(read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]).unwrap().is_none());
        let on = read(&[ENDPOINT]).unwrap().unwrap();
        assert_eq!(on.endpoint, "http://127.0.0.1:4318/v1/traces");
        assert!(!on.with_content && on.sampling.ratio >= 1.0 && on.sampling.follows_caller);
    }

    #[test]
    fn the_variables_of_traces_win_and_are_taken_as_they_are() {
        let variables = [
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://user:pass@example.org/otel?key=1"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc%3D, x-a=b"),
            ("OTEL_SERVICE_NAME", "team"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment=test"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "True"),
        ];
        let settings = read(&variables).unwrap().unwrap();
        assert_eq!(settings.endpoint, "https://user:pass@example.org/otel?key=1");
        assert_eq!(settings.endpoint_without_secrets(), "https://example.org/otel");
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(settings.headers, [pair("authorization", "Basic abc="), pair("x-a", "b")]);
        assert_eq!(settings.resource[..2], [pair("deployment.environment", "test"), pair("service.name", "team")]);
        assert!((settings.sampling.ratio - 0.25).abs() < 1e-9 && !settings.sampling.follows_caller);
        assert!(settings.with_content);
    }

    #[test]
    fn what_cannot_be_done_is_refused_at_the_start() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "no pair"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
        ] {
            assert!(read(&[ENDPOINT, (name, value)]).is_err(), "{name}");
        }
        assert!(read(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")]).is_err());
    }
}
