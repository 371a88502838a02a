//! Where a codec runs: the processor, or a device of candle.

/// Where a codec runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// This processor, with the kernels of this crate.
    #[default]
    Cpu,
    /// A CUDA device by its number; needs the feature `cuda`.
    Cuda(usize),
    /// A Metal device by its number; needs the feature `metal`.
    Metal(usize),
    /// candle on this processor: slow, and what CUDA and Metal run otherwise. To compare with.
    #[cfg(feature = "candle")]
    Candle,
}

impl Device {
    /// What it is called, with what decides its rounding: on this processor, whether products are added before they are rounded.
    pub(crate) fn kind(self, is_fused: bool) -> &'static str {
        match self {
            Device::Cpu if is_fused => "cpu",
            Device::Cpu => "cpu-portable",
            Device::Cuda(_) => "cuda",
            Device::Metal(_) => "metal",
            #[cfg(feature = "candle")]
            Device::Candle => "candle",
        }
    }
}
