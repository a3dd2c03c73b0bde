// SPDX-License-Identifier: MPL-2.0
//! What the first frame takes, part by part.

use std::time::Instant;

use super::report::parts;
use super::{Args, Case, Pictures, Result, Runner, ms};

/// Says what the first frame of the first case takes on each backend.
pub fn first_frame(args: &Args, runners: &[Box<dyn Runner>], pictures: &Pictures) -> Result<()> {
    let ([size, ..], [algorithm, ..], [superpixel_size, ..]) =
        (&args.sizes[..], &args.algorithms[..], &args.superpixel_size[..])
    else {
        return Err("--first needs a size, an algorithm and a superpixel size".into());
    };
    let case = Case::new(args, *size, *algorithm, *superpixel_size)?;
    let clip = pictures.clip(size.0, args.format);
    for runner in runners {
        let start = Instant::now();
        let mut job = runner.job(&case, &clip)?;
        let plan = ms(start.elapsed());
        let start = Instant::now();
        job.frame()?;
        let first = ms(start.elapsed());
        // The driver and its context are what any program pays.
        let others = ["driver", "context"];
        let ours = runner.opening().iter().filter(|(name, _)| !others.contains(name)).map(|(_, time)| time);
        println!(
            "{}; {}, plan {plan:.1}, first frame {first:.1}; ours {:.1}",
            runner.device(),
            parts(runner.opening()),
            ours.sum::<f64>() + plan + first
        );
    }
    Ok(())
}
