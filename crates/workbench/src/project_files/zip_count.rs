//! Reads how many entries the index of a zip archive has, without reading the index. What reads archives keeps the whole index in
//! memory, and has no limit.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

const END: [u8; 4] = [b'P', b'K', 5, 6];
const END_BYTES: usize = 22;
const MAX_COMMENT_BYTES: u64 = 0xffff;
/// Of an archive with larger numbers (zip64): where its own end is.
const LOCATOR: [u8; 4] = [b'P', b'K', 6, 7];
const LOCATOR_BYTES: usize = 20;
const END64: [u8; 4] = [b'P', b'K', 6, 6];
const END64_BYTES: usize = 56;

/// The number of entries, or `None` if the file has no such index. The position of the file is its start afterwards.
pub fn entries(file: &mut File) -> io::Result<Option<u64>> {
    let found = find(file);
    file.seek(SeekFrom::Start(0))?;
    found
}

fn find(file: &mut (impl Read + Seek)) -> io::Result<Option<u64>> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail = length.min(MAX_COMMENT_BYTES + (END_BYTES + LOCATOR_BYTES) as u64);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = Vec::new();
    file.take(tail).read_to_end(&mut bytes)?;
    let mut most = None;
    // Every place that could be the end: a reader may take another one than the last.
    for at in 0..bytes.len().saturating_sub(END_BYTES - 1) {
        if bytes[at..at + 4] != END {
            continue;
        }
        let count = u64::from(u16::from_le_bytes([bytes[at + 10], bytes[at + 11]]));
        let count = match at.checked_sub(LOCATOR_BYTES).filter(|locator| bytes[*locator..*locator + 4] == LOCATOR) {
            Some(locator) => {
                let Some(offset) = number(&bytes, locator + 8) else { return Ok(None) };
                match count64(file, offset)? {
                    Some(large) => large.max(count),
                    None => return Ok(None),
                }
            }
            None => count,
        };
        most = most.max(Some(count));
    }
    Ok(most)
}

fn count64(file: &mut (impl Read + Seek), offset: u64) -> io::Result<Option<u64>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut end = Vec::new();
    file.take(END64_BYTES as u64).read_to_end(&mut end)?;
    Ok(if end.len() == END64_BYTES && end.starts_with(&END64) { number(&end, 32) } else { None })
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
