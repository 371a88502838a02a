//! AdamW whose moments can be seen and set: candle's own keeps them to itself, and a run cannot go on without them.

use candle_core::{Result, Tensor};

use crate::model::Parameter;

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
const WEIGHT_DECAY: f64 = 0.01;

/// The two moments of each parameter, in the parameters' order.
pub(crate) struct Adam {
    pub(crate) first: Vec<Tensor>,
    pub(crate) second: Vec<Tensor>,
}

impl Adam {
    /// Moments of 0.
    pub(crate) fn new(parameters: &[Parameter]) -> Result<Adam> {
        let zeros = || parameters.iter().map(|p| p.var.zeros_like()).collect::<Result<Vec<_>>>();
        Ok(Adam { first: zeros()?, second: zeros()? })
    }

    /// Step number `step`, the first is 1, with one gradient for each parameter.
    pub(crate) fn step(
        &mut self,
        parameters: &[Parameter],
        grads: &[Tensor],
        step: u64,
        rate: f64,
    ) -> Result<()> {
        let correction = |beta: f64| 1.0 - beta.powf(step as f64);
        let (first_is, second_is) = (correction(BETA_1), correction(BETA_2));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, grad), (first, second)) in parameters.iter().zip(grads).zip(moments) {
            *first = ((&*first * BETA_1)? + (grad * (1.0 - BETA_1))?)?;
            *second = ((&*second * BETA_2)? + (grad.sqr()? * (1.0 - BETA_2))?)?;
            let root = ((&*second / second_is)?.sqrt()? + EPSILON)?;
            let moved = ((&*first / first_is)? / root)?;
            let kept = (parameter.var.as_tensor() * (1.0 - rate * WEIGHT_DECAY))?;
            parameter.var.set(&(kept - (moved * rate)?)?)?;
        }
        Ok(())
    }
}

/// Length of all gradients as one vector.
pub(crate) fn norm(grads: &[Tensor]) -> Result<f64> {
    let squares = grads.iter().map(|grad| Ok(f64::from(grad.sqr()?.sum_all()?.to_scalar::<f32>()?)));
    Ok(squares.sum::<Result<f64>>()?.sqrt())
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn two_steps_are_those_computed_by_hand() {
        let var = Var::new(&[1.0f32, -2.0], &Device::Cpu).unwrap();
        let parameters = [Parameter { name: "w".to_string(), var }];
        let mut adam = Adam::new(&parameters).unwrap();
        let (mut weights, mut first, mut second) = ([1.0f64, -2.0], [0.0; 2], [0.0; 2]);
        for (step, grad) in [(1, [0.5, -0.25]), (2, [0.1, 1.0])] {
            for i in 0..2 {
                first[i] = 0.9 * first[i] + 0.1 * grad[i];
                second[i] = 0.999 * second[i] + 0.001 * grad[i] * grad[i];
                let (m, v) = (first[i] / (1.0 - 0.9f64.powi(step)), second[i] / (1.0 - 0.999f64.powi(step)));
                weights[i] = weights[i] * (1.0 - 0.1 * 0.01) - 0.1 * m / (v.sqrt() + 1e-8);
            }
            let grads = [Tensor::new(&grad.map(|g| g as f32), &Device::Cpu).unwrap()];
            adam.step(&parameters, &grads, step as u64, 0.1).unwrap();
            let found = parameters[0].var.to_vec1::<f32>().unwrap();
            for i in 0..2 {
                assert!((f64::from(found[i]) - weights[i]).abs() < 1e-5, "{found:?} for {weights:?}");
            }
        }
    }

    #[test]
    fn the_norm_is_over_all_gradients() {
        let grads = [
            Tensor::new(&[3.0f32], &Device::Cpu).unwrap(),
            Tensor::new(&[0.0f32, 4.0], &Device::Cpu).unwrap(),
        ];
        assert_eq!(norm(&grads).unwrap(), 5.0);
    }
}
