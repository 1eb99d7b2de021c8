//! The double of the model vendors as a program, for trying a CLI by hand: `model-double [PORT]`.
//!
//! Prints its address and answers until it is killed. The directives are documented in `testkit::models`.

use std::process::ExitCode;
use testkit::models::ModelDouble;

#[tokio::main]
async fn main() -> ExitCode {
    let port = match std::env::args().nth(1).map(|text| text.parse()) {
        None => 0,
        Some(Ok(port)) => port,
        Some(Err(_)) => {
            eprintln!("usage: model-double [PORT]");
            return ExitCode::from(2);
        }
    };
    match ModelDouble::start_on(port).await {
        Ok(models) => {
            println!("{}", models.url());
            // Until the terminal or the parent ends it.
            std::future::pending().await
        }
        Err(error) => {
            eprintln!("model-double: cannot listen on port {port}: {error}");
            ExitCode::FAILURE
        }
    }
}
