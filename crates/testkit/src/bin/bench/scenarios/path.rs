//! The whole path, as fast as it goes: provider → journal → 50 rooms × 2 readers.

use crate::{
    Bench,
    baseline::BaselineKind,
    load::{BenchLoad, LoadResult, run},
    stack::{BenchStack, TokenRate},
    statistics::Rounds,
    table::{Aim, FigureRow, FigureUnit},
    usage::size_of_folder,
};

const ROOMS: usize = 50;
const READERS: usize = 2;

#[derive(Default)]
pub struct PathScenario {
    greenroom: Rounds,
    processor: Rounds,
    bytes_a_token: Rounds,
    tokens_per_event: Rounds,
    unjoined: Rounds,
    unjoined_processor: Rounds,
    bare: Rounds,
    bare_processor: Rounds,
    inserted: Rounds,
    inserted_processor: Rounds,
}

impl PathScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let tokens = bench.scale.path_tokens;
        let data = bench.new_folder("path");
        let greenroom = BenchStack::greenroom(&bench.binary, &data).await?;
        let outcome = measure(greenroom, tokens, TokenRate::Unpaced).await?;
        self.tokens_per_event.push(outcome.tokens_an_event);
        self.greenroom.push(outcome.tokens_a_second);
        self.processor.push(outcome.processor_microseconds_a_delivery);
        let total = u32::try_from(ROOMS)? * tokens;
        self.bytes_a_token.push(u32::try_from(size_of_folder(&data)?).map_or(f64::NAN, f64::from) / f64::from(total));

        let greenroom = BenchStack::greenroom(&bench.binary, &bench.new_folder("path")).await?;
        let outcome = measure(greenroom, bench.scale.path_tokens_unjoined, TokenRate::UnpacedUnjoined).await?;
        self.unjoined.push(outcome.tokens_a_second);
        self.unjoined_processor.push(outcome.processor_microseconds_a_delivery);

        let bare = BenchStack::baseline(BaselineKind::Bare, &bench.new_folder("bare")).await?;
        let outcome = measure(bare, tokens, TokenRate::Unpaced).await?;
        self.bare.push(outcome.tokens_a_second);
        self.bare_processor.push(outcome.processor_microseconds_a_delivery);

        let inserted = BenchStack::baseline(BaselineKind::Insert, &bench.new_folder("insert")).await?;
        let outcome = measure(inserted, bench.scale.path_tokens_inserted, TokenRate::Unpaced).await?;
        self.inserted.push(outcome.tokens_a_second);
        self.inserted_processor.push(outcome.processor_microseconds_a_delivery);
        Ok(())
    }

    pub fn rows(self) -> Vec<FigureRow> {
        let (insert, bare) = (BaselineKind::Insert.name(), BaselineKind::Bare.name());
        let what = "durable tokens/s to readers, 50 rooms × 2";
        let processor = "processor time per delivery, 50 rooms × 2";
        let apart = "durable tokens/s to readers, where none can be joined";
        let processor_apart = "processor time per delivery, where none can be joined";
        vec![
            FigureRow::new(what, FigureUnit::PerSecond, self.greenroom.clone())
                .against(insert, self.inserted.clone())
                .aiming_at(Aim::RatioAtLeast(40.0)),
            FigureRow::new(what, FigureUnit::PerSecond, self.greenroom)
                .against(bare, self.bare.clone())
                .aiming_at(Aim::RatioAtLeast(0.2)),
            FigureRow::new("tokens joined into one event in that load", FigureUnit::Count, self.tokens_per_event),
            FigureRow::new(apart, FigureUnit::PerSecond, self.unjoined.clone()).against(insert, self.inserted),
            FigureRow::new(apart, FigureUnit::PerSecond, self.unjoined).against(bare, self.bare),
            FigureRow::new(processor, FigureUnit::Microseconds, self.processor.clone())
                .against(bare, self.bare_processor.clone())
                .aiming_at(Aim::AtMost(5.0)),
            FigureRow::new(processor, FigureUnit::Microseconds, self.processor)
                .against(insert, self.inserted_processor),
            FigureRow::new(processor_apart, FigureUnit::Microseconds, self.unjoined_processor)
                .against(bare, self.bare_processor)
                .aiming_at(Aim::AtMost(5.0)),
            FigureRow::new("bytes on disk per token, right after", FigureUnit::Bytes, self.bytes_a_token),
        ]
    }
}

async fn measure(stack: BenchStack, tokens: u32, speech: TokenRate) -> anyhow::Result<LoadResult> {
    let outcome = run(&stack, BenchLoad { rooms: ROOMS, readers: READERS, tokens, rate: speech }).await;
    stack.stop().await?;
    outcome
}
