//! The variables that windrow reads, and its exit codes, as help and manual pages list them.

/// A variable of the environment, and what it says.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    ("WINDROW_CACHE", "Folder of the cache [default: $XDG_CACHE_HOME/windrow, else ~/.cache/windrow]"),
    (
        "WINDROW_CACHE_LIMIT",
        "Most bytes of the cache, as 20GB [default: half of what is free on its disk and its own size]",
    ),
    (
        "WINDROW_STORE_OPTIONS",
        "For prep run: options of stores, a JSON object of texts; those of --store-option win",
    ),
    (
        "RANK, WORLD_SIZE",
        "For prep run: the share of this worker; a Slurm array and a Kubernetes Indexed Job say it too",
    ),
    (
        "AWS_…, GOOGLE_…, AZURE_…",
        "Keys, profiles and endpoints of S3, Google Cloud Storage and Azure, as their own clients read them",
    ),
    ("HF_TOKEN", "Token for private and gated data sets of the Hugging Face Hub"),
    ("HF_ENDPOINT", "Another Hub, or a mirror [default: https://huggingface.co]"),
    ("HF_HOME, HF_HUB_CACHE", "Cache of the Hub's own clients: files in it are copied instead of downloaded"),
    ("HF_HUB_OFFLINE", "1: no connection is opened to the Hub"),
    ("HTTPS_PROXY, NO_PROXY", "Proxies, as usual"),
    ("NO_COLOR, CLICOLOR_FORCE", "No colours; colours also where there is no terminal; --color wins"),
];

/// What an exit code means.
pub(crate) const EXITS: &[(&str, &str)] = &[
    ("0", "Done"),
    ("1", "Failed: a file that is not there, a disk, a network"),
    ("2", "The command line is invalid"),
    ("3", "The data is bad"),
    ("4", "A state, plan or tokenizer does not fit the data"),
    ("5", "Partly done: what is there is whole, and the same command continues"),
    ("130", "Interrupted, and can be run again"),
];

/// Both as text.
pub(crate) fn text() -> String {
    let rows = |rows: &[(&str, &str)]| {
        rows.iter().map(|(name, says)| format!("\n  {name}\n      {says}")).collect::<String>()
    };
    format!("Environment:{}\n\nExit status:{}", rows(VARIABLES), rows(EXITS))
}
