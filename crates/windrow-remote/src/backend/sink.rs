//! What is put into S3, Google Cloud Storage and Azure.

use std::sync::Arc;

use object_store::{ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload};

use super::cloud::{Client, Cloud, path};
use super::kept_hash::with_hash;
use super::{Answer, Bytes, Sink, Upload};

impl Sink for Cloud {
    fn put<'a>(&'a self, key: &'a str, bytes: Bytes, hash: &'a str, create: bool) -> Answer<'a, ()> {
        Box::pin(async move {
            let mode = if create { PutMode::Create } else { PutMode::Overwrite };
            let options = PutOptions { mode, attributes: with_hash(hash), ..PutOptions::default() };
            let path = &path(key)?;
            let ask = |client: Arc<Client>| {
                let (bytes, options) = (PutPayload::from(bytes.clone()), options.clone());
                async move { client.store.put_opts(path, bytes, options).await }
            };
            self.asked(ask).await.map(drop)
        })
    }

    fn begin<'a>(&'a self, key: &'a str, hash: &'a str) -> Answer<'a, Upload> {
        Box::pin(async move {
            let (path, attributes) = (&path(key)?, with_hash(hash));
            let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
            let ask = |client: Arc<Client>| {
                let options = options.clone();
                async move {
                    match client.parts.create_multipart_opts(path, options).await {
                        // It keeps nothing beside an object of parts.
                        Err(object_store::Error::NotSupported { .. }) => {
                            client.parts.create_multipart(path).await
                        }
                        other => other,
                    }
                }
            };
            self.asked(ask).await.map(Upload)
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
            let path = &path(key)?;
            let ask = |client: Arc<Client>| {
                let bytes = PutPayload::from(bytes.clone());
                async move { client.parts.put_part(path, &upload.0, number, bytes).await }
            };
            self.asked(ask).await.map(|part| part.content_id)
        })
    }

    fn complete<'a>(&'a self, key: &'a str, upload: &'a Upload, parts: Vec<String>) -> Answer<'a, ()> {
        Box::pin(async move {
            let parts = parts.into_iter().map(|content_id| object_store::multipart::PartId { content_id });
            let (path, parts): (_, Vec<_>) = (&path(key)?, parts.collect());
            let ask = |client: Arc<Client>| {
                let parts = parts.clone();
                async move { client.parts.complete_multipart(path, &upload.0, parts).await }
            };
            self.asked(ask).await.map(drop)
        })
    }

    fn abort<'a>(&'a self, key: &'a str, upload: &'a Upload) -> Answer<'a, ()> {
        Box::pin(async move {
            let path = &path(key)?;
            self.asked(
                |client: Arc<Client>| async move { client.parts.abort_multipart(path, &upload.0).await },
            )
            .await
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let path = &path(key)?;
            match self.asked(|client: Arc<Client>| async move { client.store.delete(path).await }).await {
                Err(trouble) if trouble.what == crate::trouble::What::NotFound => Ok(()),
                other => other,
            }
        })
    }
}
