//! Generates the stubs from the contract; `protoc` (or what PROTOC names) must be there.

fn main() -> std::io::Result<()> {
    let contract =
        ["callback", "leadership", "runs", "state", "stream"].map(|name| format!("../../proto/baton/v1/{name}.proto"));
    tonic_prost_build::configure().compile_protos(&contract, &["../../proto".to_owned()])
}
