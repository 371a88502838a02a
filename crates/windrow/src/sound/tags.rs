//! Which prompts are left out.

/// Prompts that are left out, by what is in them. A file without a prompt never is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skip {
    /// Texts anywhere in the prompt, whatever their case: `live` is in `delivery`.
    pub texts: Vec<String>,
    /// Whole words, whatever their case: `live` is not in `delivery`.
    pub words: Vec<String>,
}

impl Skip {
    /// Whether this prompt is left out.
    ///
    /// ```
    /// # use windrow::sound::Skip;
    /// let skip = Skip { texts: vec![], words: vec!["vocals".into()] };
    /// assert!(skip.skips("rock, Vocals"));
    /// assert!(!skip.skips("no_vocals"));
    /// ```
    pub fn skips(&self, prompt: &str) -> bool {
        let prompt = prompt.to_lowercase();
        let in_it = |text: &String| !text.is_empty() && prompt.contains(&text.to_lowercase());
        let a_word = |word: &String| {
            let word = word.to_lowercase();
            prompt.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word)
        };
        self.texts.iter().any(in_it) || self.words.iter().any(a_word)
    }
}
