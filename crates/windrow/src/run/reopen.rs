//! What a recipe describes, opened again: its data, its views, its order.

use windrow_core::{Error, Result};

use crate::mix::Mixture;
use crate::mix::shares::Shares;
use crate::opening::own::OpenOptions;
use crate::run::balance_text::of_text;
use crate::run::builder::LoaderBuilder;
use crate::run::recipe::Recipe;
use crate::views::samples::Samples;

impl Recipe {
    /// Opens all parts.
    ///
    /// # Errors
    /// As [`open_with`](crate::open_with); `Config` when names, weights and parts do not agree in number; `Mismatch` when the plan was saved
    /// of other data.
    pub fn builder(&self) -> Result<LoaderBuilder> {
        self.builder_by(&OpenOptions::new())
    }

    // How many rows come together.
    fn sized(&self, builder: LoaderBuilder) -> LoaderBuilder {
        let builder = match self.max_tokens {
            Some(tokens) => builder.max_tokens(tokens),
            None => builder.global_batch_size(self.global_batch_size),
        };
        let builder = self.multiple.map_or(builder.clone(), |rows| builder.multiple(rows));
        let builder = self.pool.map_or(builder.clone(), |rows| builder.pool(rows));
        self.lengths.as_ref().map_or(builder.clone(), |lengths| builder.lengths(lengths.clone()))
    }

    /// Opens all parts with formats and a store of one's own.
    ///
    /// # Errors
    /// As [`Recipe::builder`].
    pub fn builder_by(&self, open: &OpenOptions) -> Result<LoaderBuilder> {
        let mut samples: Vec<Samples> =
            self.parts.iter().map(|part| part.open_by(open)).collect::<Result<_>>()?;
        let builder = match (&self.mixture, self.stop, samples.len()) {
            (None, None, 1) => samples.remove(0).loader(),
            (Some(shares), None, _) => Mixture::assembled(samples, shares, self.part_ids)?.loader(),
            (None, Some(stop), n) if n == self.names.len() && n == self.weights.len() => {
                let shares = Shares {
                    names: self.names.clone(),
                    weights: self.weights.clone(),
                    stop,
                    ..Shares::default()
                };
                Mixture::assembled(samples, &shares, self.part_ids)?.loader()
            }
            (_, _, n) => {
                return Err(Error::config(format!(
                    "a plan of {n} parts with {} names and {} weights is neither one view nor a mixture",
                    self.names.len(),
                    self.weights.len()
                )));
            }
        };
        let builder = self
            .sized(builder)
            .shuffle(self.shuffle.clone())
            .seed(self.seed)
            .last(self.last_batch())
            .skip(&self.skip)
            .map_name(self.map_name.as_deref())
            .balance(self.balance.as_deref().map(of_text).transpose()?)
            .accumulate(self.accumulate.unwrap_or(1));
        if let Some(saved) = &self.plan {
            builder.plan()?.identity()?.check_saved(saved)?;
        }
        Ok(builder)
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::{DType, Kind};

    use crate::views::part::RecipePart;

    #[test]
    fn a_function_is_named_by_a_recipe_but_not_opened_from_it() {
        let file = tempfile::NamedTempFile::with_suffix(".bin").unwrap();
        crate::prepare::dummy(file.path(), 100, 50, 0, true).unwrap();
        let data = crate::open(file.path()).unwrap();
        let halved = crate::Custom::new("halved", |whole| Ok(whole.values.iter().map(|x| x / 2.0).collect()));
        let windows = crate::Windows::new(4).scaler(crate::Scaler::Custom(halved));
        let samples = data.windows(windows).unwrap();
        let halves = samples.batch(&[3], 0).unwrap().get::<f32>("labels").unwrap().to_vec();
        let stored = data.view(crate::Windows::new(4), Some(DType::F32)).unwrap().batch(&[3], 0).unwrap();
        assert!(
            halves.iter().zip(stored.get::<f32>("labels").unwrap()).all(|(half, whole)| half * 2.0 == *whole)
        );
        assert_eq!(
            samples.with_dtype(DType::F64).unwrap().batch(&[3], 0).unwrap().fields()[0].dtype,
            DType::F64
        );
        assert_eq!(samples.loader().recipe().unwrap_err().kind(), Kind::Config);
        let text = serde_json::to_string(samples.recipe()).unwrap();
        let e = serde_json::from_str::<RecipePart>(&text).unwrap().open().err().unwrap();
        assert!(e.kind() == Kind::Config && format!("{e:#}").contains("\"halved\""), "{e}");
    }
}
