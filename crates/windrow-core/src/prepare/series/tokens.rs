//! All records one after the other in a headerless `.bin`, with its manifest.

use std::path::PathBuf;

use serde_json::json;

use super::body::{Begin, Body, Stored, Written};
use crate::array::DType;
use crate::error::Result;
use crate::manifest::Manifest;
use crate::output::Growing;
use crate::output::write_manifest_beside;
use crate::prepare::no_ids;

pub(super) struct Tokens {
    work: PathBuf,
    name: String,
    file: Growing,
    manifest: Manifest,
    documents: u64,
    durable: bool,
    warned: bool,
}

impl Tokens {
    pub(super) fn begin(begin: &Begin<'_>) -> Result<Tokens> {
        begin.only(&[DType::U8, DType::U16, DType::U32, DType::I32, DType::I64], "token files")?;
        Ok(Tokens {
            work: begin.work.to_path_buf(),
            name: begin.name.to_string(),
            file: Growing::create(begin.work.join(begin.name))?,
            manifest: begin.manifest("tokens"),
            documents: 0,
            durable: begin.options.durable,
            warned: false,
        })
    }
}

impl Body for Tokens {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            log::warn!("a token file holds ids only: what stands beside them is left out");
            self.warned = true;
        }
        self.documents += u64::from(record.is_last);
        self.file.write(record.bytes)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let size = self.file.size();
        if size == 0 {
            return Err(no_ids());
        }
        let file = self.file.finish(self.durable)?;
        let mut manifest = self.manifest;
        manifest.records = Some(1);
        manifest.statistics.insert("documents".to_string(), json!(self.documents));
        let targets = write_manifest_beside(&self.work, &self.name, manifest, file, self.durable)?.into();
        Ok(Written { targets, files: 1, bytes: size })
    }
}
