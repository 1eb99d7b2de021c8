//! Reads one fact from a 64-bit Linux program: whether it needs a loader, and so the shared libraries of the machine.

use crate::repository::XtaskResult;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const INTERPRETER: u32 = 3;
/// Where the ELF header says where the program headers are, how long each is, and how many there are.
const TABLE_OFFSET: usize = 0x20;
const ENTRY_LENGTH: usize = 0x36;
const ENTRY_COUNT: usize = 0x38;

pub fn needs_loader(program: &[u8]) -> XtaskResult<bool> {
    let truncated = || "the program is not a complete 64-bit ELF file".to_owned();
    if !program.starts_with(MAGIC) {
        return Err(truncated());
    }
    let start = number(program, TABLE_OFFSET, 8).ok_or_else(truncated)?;
    let length = number(program, ENTRY_LENGTH, 2).ok_or_else(truncated)?;
    let count = number(program, ENTRY_COUNT, 2).ok_or_else(truncated)?;
    for index in 0..count {
        let entry = index.checked_mul(length).and_then(|offset| offset.checked_add(start)).ok_or_else(truncated)?;
        if number(program, entry, 4).ok_or_else(truncated)? == INTERPRETER as usize {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Little-endian.
fn number(bytes: &[u8], offset: usize, length: usize) -> Option<usize> {
    let digits = bytes.get(offset..offset.checked_add(length)?)?;
    let value = digits.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and program headers of these types.
    fn program(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 0x40];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[TABLE_OFFSET] = 0x40;
        bytes[ENTRY_LENGTH] = 0x38;
        bytes[ENTRY_COUNT] = u8::try_from(types.len()).unwrap();
        for kind in types {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 0x34]);
        }
        bytes
    }

    #[test]
    fn a_static_program_names_no_interpreter() {
        assert_eq!(needs_loader(&program(&[1, 2, 0x6474_e551])), Ok(false));
        assert_eq!(needs_loader(&program(&[6, INTERPRETER, 1])), Ok(true));
        assert!(needs_loader(b"#!/bin/sh\n").is_err());
        assert!(needs_loader(&program(&[1, 2])[..0x50]).is_err());
        let tests = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(needs_loader(&tests), Ok(cfg!(target_env = "gnu")));
    }
}
