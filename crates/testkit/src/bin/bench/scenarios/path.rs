//! The whole path, as fast as it goes: provider → journal → 50 rooms × 2 readers.

use crate::{
    Bench,
    baseline::Kind,
    load::{Load, Outcome, run},
    stack::{Speech, Stack},
    statistics::Rounds,
    table::{Aim, Row, Unit},
    usage::size_of_folder,
};

const ROOMS: usize = 50;
const READERS: usize = 2;

#[derive(Default)]
pub struct Path {
    greenroom: Rounds,
    processor: Rounds,
    bytes_a_token: Rounds,
    joined: Rounds,
    apart: Rounds,
    apart_processor: Rounds,
    bare: Rounds,
    bare_processor: Rounds,
    inserted: Rounds,
    inserted_processor: Rounds,
}

impl Path {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let tokens = bench.scale.path_tokens;
        let data = bench.fresh("path");
        let greenroom = Stack::greenroom(&bench.binary, &data).await?;
        let outcome = measure(greenroom, tokens, Speech::FlatOut).await?;
        self.joined.push(outcome.tokens_an_event);
        self.greenroom.push(outcome.tokens_a_second);
        self.processor.push(outcome.processor_microseconds_a_delivery);
        let total = u32::try_from(ROOMS)? * tokens;
        self.bytes_a_token.push(u32::try_from(size_of_folder(&data)?).map_or(f64::NAN, f64::from) / f64::from(total));

        let greenroom = Stack::greenroom(&bench.binary, &bench.fresh("path")).await?;
        let outcome = measure(greenroom, bench.scale.path_tokens_apart, Speech::FlatOutApart).await?;
        self.apart.push(outcome.tokens_a_second);
        self.apart_processor.push(outcome.processor_microseconds_a_delivery);

        let bare = Stack::baseline(Kind::Bare, &bench.fresh("bare")).await?;
        let outcome = measure(bare, tokens, Speech::FlatOut).await?;
        self.bare.push(outcome.tokens_a_second);
        self.bare_processor.push(outcome.processor_microseconds_a_delivery);

        let inserted = Stack::baseline(Kind::Insert, &bench.fresh("insert")).await?;
        let outcome = measure(inserted, bench.scale.path_tokens_inserted, Speech::FlatOut).await?;
        self.inserted.push(outcome.tokens_a_second);
        self.inserted_processor.push(outcome.processor_microseconds_a_delivery);
        Ok(())
    }

    pub fn rows(self) -> Vec<Row> {
        let (insert, bare) = (Kind::Insert.name(), Kind::Bare.name());
        let what = "durable tokens/s to readers, 50 rooms × 2";
        let processor = "processor time per delivery, 50 rooms × 2";
        let apart = "durable tokens/s to readers, where none can be joined";
        let processor_apart = "processor time per delivery, where none can be joined";
        vec![
            Row::new(what, Unit::PerSecond, self.greenroom.clone())
                .against(insert, self.inserted.clone())
                .aiming_at(Aim::RatioAtLeast(40.0)),
            Row::new(what, Unit::PerSecond, self.greenroom)
                .against(bare, self.bare.clone())
                .aiming_at(Aim::RatioAtLeast(0.2)),
            Row::new("tokens joined into one event in that load", Unit::Count, self.joined),
            Row::new(apart, Unit::PerSecond, self.apart.clone()).against(insert, self.inserted),
            Row::new(apart, Unit::PerSecond, self.apart).against(bare, self.bare),
            Row::new(processor, Unit::Microseconds, self.processor.clone())
                .against(bare, self.bare_processor.clone())
                .aiming_at(Aim::AtMost(5.0)),
            Row::new(processor, Unit::Microseconds, self.processor).against(insert, self.inserted_processor),
            Row::new(processor_apart, Unit::Microseconds, self.apart_processor).against(bare, self.bare_processor),
            Row::new("bytes on disk per token, right after", Unit::Bytes, self.bytes_a_token),
        ]
    }
}

async fn measure(stack: Stack, tokens: u32, speech: Speech) -> anyhow::Result<Outcome> {
    let outcome = run(&stack, Load { rooms: ROOMS, readers: READERS, tokens, speech }).await;
    stack.stop().await?;
    outcome
}
