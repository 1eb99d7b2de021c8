//! XML calls in model output: nothing is lost or duplicated at any split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use providers::direct::xml::{XmlPiece, XmlReader};

fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<XmlPiece> {
    let (mut reader, mut bits, mut joined) = (XmlReader::default(), Vec::new(), Vec::<XmlPiece>::new());
    pieces.into_iter().for_each(|piece| reader.push(piece, &mut bits));
    reader.end(&mut bits);
    for bit in bits {
        match (joined.last_mut(), bit) {
            (Some(XmlPiece::Text(text)), XmlPiece::Text(more)) => text.push_str(&more),
            (_, bit) => joined.push(bit),
        }
    }
    joined
}

fuzz_target!(|text: &str| {
    let letters = text.char_indices().map(|(at, letter)| &text[at..at + letter.len_utf8()]);
    assert_eq!(read(letters), read([text]));
});
