//! The program `windrow`: everything is in the library, so that `python -m windrow` is the same program.

fn main() {
    std::process::exit(windrow_cli::main_from(std::env::args_os()));
}
