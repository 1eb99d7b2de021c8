//! Writes one kind of X.509 certificate (RFC 5280): self-signed, P-256, for a server. This is all that a crate would be
//! needed for, and about a hundred lines; what reads it back are rustls and the clients.

use anyhow::Context as _;
use domain::time::Timestamp;
use ring::{
    rand::{SecureRandom, SystemRandom},
    signature::{EcdsaKeyPair, KeyPair as _},
};
use std::net::IpAddr;

// Tags of DER.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

// Object identifiers, encoded.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTHENTICATION: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

const ISSUER: &str = "Greenroom, self-signed";

/// What the certificate is for.
pub enum SubjectName {
    Dns(String),
    Address(IpAddr),
}

impl SubjectName {
    pub fn parse(name: &str) -> Self {
        name.parse().map_or_else(|_| Self::Dns(name.to_owned()), Self::Address)
    }

    fn der(&self) -> Vec<u8> {
        match self {
            Self::Dns(name) => element(DNS_NAME, &[name.as_bytes()]),
            Self::Address(IpAddr::V4(ip)) => element(IP_ADDRESS, &[&ip.octets()]),
            Self::Address(IpAddr::V6(ip)) => element(IP_ADDRESS, &[&ip.octets()]),
        }
    }
}

pub fn self_signed(
    key: &EcdsaKeyPair,
    names: &[SubjectName],
    begins: Timestamp,
    ends: Timestamp,
    random: &SystemRandom,
) -> anyhow::Result<Vec<u8>> {
    let mut serial = [0; 16];
    random.fill(&mut serial).ok().context("no random numbers")?;
    // Positive, and without a leading zero.
    serial[0] = serial[0] & 0x7f | 0x40;
    let algorithm = element(SEQUENCE, &[&element(OBJECT_ID, &[ECDSA_WITH_SHA256])]);
    let common_name = [element(OBJECT_ID, &[COMMON_NAME]), element(UTF8_STRING, &[ISSUER.as_bytes()])].concat();
    let issuer = element(SEQUENCE, &[&element(SET, &[&element(SEQUENCE, &[&common_name])])]);
    let names: Vec<u8> = names.iter().flat_map(SubjectName::der).collect();
    // No key usage: with it, OpenSSL would want the right to sign other certificates, which this key must not have.
    let extensions = [
        extension(SUBJECT_ALTERNATIVE_NAMES, &names),
        extension(EXTENDED_KEY_USAGE, &element(OBJECT_ID, &[SERVER_AUTHENTICATION])),
    ];
    let signed = element(
        SEQUENCE,
        &[
            // Version 3.
            &element(VERSION, &[&element(INTEGER, &[&[2]])]),
            &element(INTEGER, &[&serial]),
            &algorithm,
            &issuer,
            &element(SEQUENCE, &[&time(begins), &time(ends)]),
            // The subject is the issuer.
            &issuer,
            &public_key(key.public_key().as_ref()),
            &element(EXTENSIONS, &[&element(SEQUENCE, &[&extensions.concat()])]),
        ],
    );
    let signature = key.sign(random, &signed).ok().context("cannot sign")?;
    Ok(element(SEQUENCE, &[&signed, &algorithm, &bits(signature.as_ref())]))
}

fn public_key(point: &[u8]) -> Vec<u8> {
    let algorithm = element(SEQUENCE, &[&element(OBJECT_ID, &[EC_PUBLIC_KEY]), &element(OBJECT_ID, &[P256])]);
    element(SEQUENCE, &[&algorithm, &bits(point)])
}

fn extension(id: &[u8], values: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[&element(OBJECT_ID, &[id]), &element(OCTET_STRING, &[&element(SEQUENCE, &[values])])])
}

/// Whole bytes: no bit is unused.
fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes])
}

/// Two digits of the year until 2049, four from then on, as the standard wants it.
fn time(at: Timestamp) -> Vec<u8> {
    let digits: String = at.to_string().chars().filter(char::is_ascii_digit).take(14).collect();
    match digits.as_str() < "2050" {
        true => element(UTC_TIME, &[&digits.as_bytes()[2..], b"Z"]),
        false => element(GENERALIZED_TIME, &[digits.as_bytes(), b"Z"]),
    }
}

/// Tag, length, value.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let value = parts.concat();
    let mut der = vec![tag];
    let length = value.len().to_be_bytes();
    let length = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    match length {
        [short @ 0..=127] => der.push(*short),
        // The number of bytes that the length takes, at most 8.
        long => der.extend([&[0x80 | long.len() as u8], long].concat()),
    }
    der.extend(value);
    der
}

#[cfg(test)]
mod tests {
    use super::{element, time};
    use domain::time::Timestamp;

    #[test]
    fn lengths_take_one_byte_or_say_how_many() {
        assert_eq!(element(4, &[]), [4, 0]);
        assert_eq!(element(4, &[&[7; 127]])[..2], [4, 127]);
        assert_eq!(element(4, &[&[7; 128]])[..3], [4, 0x81, 128]);
        assert_eq!(element(4, &[&[7; 100], &[7; 200]])[..4], [4, 0x82, 1, 44]);
    }

    #[test]
    fn years_from_2050_have_four_digits() {
        let at = |text: &str| serde_json::from_value::<Timestamp>(text.into()).unwrap();
        assert_eq!(time(at("2026-11-17T09:05:01.250Z")), [&[0x17, 13], &b"261117090501Z"[..]].concat());
        assert_eq!(time(at("2050-01-01T00:00:00Z")), [&[0x18, 15], &b"20500101000000Z"[..]].concat());
    }
}
