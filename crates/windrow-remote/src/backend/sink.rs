//! What is put into S3, Google Cloud Storage and Azure.

use object_store::{ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload};

use super::cloud::{Cloud, noted, path};
use super::kept_hash::with_hash;
use super::{Answer, Bytes, Sink, Upload};

impl Sink for Cloud {
    fn put<'a>(&'a self, key: &'a str, bytes: Bytes, hash: &'a str, create: bool) -> Answer<'a, ()> {
        Box::pin(async move {
            let mode = if create { PutMode::Create } else { PutMode::Overwrite };
            let options = PutOptions { mode, attributes: with_hash(hash), ..PutOptions::default() };
            noted(self.store.put_opts(&path(key)?, PutPayload::from(bytes), options)).await.map(drop)
        })
    }

    fn begin<'a>(&'a self, key: &'a str, hash: &'a str) -> Answer<'a, Upload> {
        Box::pin(async move {
            let (path, attributes) = (path(key)?, with_hash(hash));
            let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
            noted(async {
                match self.parts.create_multipart_opts(&path, options).await {
                    // It keeps nothing beside an object of parts.
                    Err(object_store::Error::NotSupported { .. }) => self.parts.create_multipart(&path).await,
                    other => other,
                }
            })
            .await
            .map(Upload)
        })
    }

    fn part<'a>(
        &'a self,
        key: &'a str,
        upload: &'a Upload,
        number: usize,
        bytes: Bytes,
    ) -> Answer<'a, String> {
        Box::pin(async move {
            let path = path(key)?;
            noted(self.parts.put_part(&path, &upload.0, number, PutPayload::from(bytes)))
                .await
                .map(|part| part.content_id)
        })
    }

    fn complete<'a>(&'a self, key: &'a str, upload: &'a Upload, parts: Vec<String>) -> Answer<'a, ()> {
        Box::pin(async move {
            let parts = parts.into_iter().map(|content_id| object_store::multipart::PartId { content_id });
            noted(self.parts.complete_multipart(&path(key)?, &upload.0, parts.collect())).await.map(drop)
        })
    }

    fn abort<'a>(&'a self, key: &'a str, upload: &'a Upload) -> Answer<'a, ()> {
        Box::pin(async move { noted(self.parts.abort_multipart(&path(key)?, &upload.0)).await })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            match noted(self.store.delete(&path(key)?)).await {
                Err(trouble) if trouble.what == crate::trouble::What::NotFound => Ok(()),
                other => other,
            }
        })
    }
}
