// SPDX-License-Identifier: MPL-2.0
//! Compares all outputs of both backends for equality, frame by frame.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{Cuda, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, FrameMut, Labels};
use gstsuperpixel::params::{Drawing, Outputs, Params};
use gstsuperpixel::plan::Plan;

use crate::pictures::Buffer;

/// All but linear light.
pub const EVERYTHING: Outputs =
    Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

/// An engine on each backend.
pub struct Both {
    pub cpu: Engine<Cpu>,
    pub cuda: Engine<Cuda>,
    staging: Staging,
    what: String,
    frame: usize,
}

impl Both {
    /// For frames of a kind; `what` is said where something differs.
    pub fn new(cuda: &Cuda, params: &Params, info: FrameInfo, what: &str) -> Self {
        let plan = Plan::new(params, info).unwrap();
        let (w, h) = (info.geometry.width(), info.geometry.height());
        Self {
            cpu: Engine::new(Cpu::new(2).unwrap(), plan.clone()).unwrap(),
            cuda: Engine::new(cuda.clone(), plan).unwrap(),
            staging: Staging::new(cuda, info).unwrap(),
            what: format!("{what}: {:?} {w}x{h} {params:?}", info.format),
            frame: 0,
        }
    }

    /// Goes on with other parameters.
    #[allow(dead_code)]
    pub fn change(&mut self, params: &Params) {
        let plan = Plan::new(params, self.cpu.plan().frame()).unwrap();
        assert!(self.cpu.change(&plan).unwrap() && self.cuda.change(&plan).unwrap(), "{}", self.what);
        self.what += &format!("; then {params:?}");
    }

    /// Goes on with other parameters, or where an engine cannot, as the element does: with a new one, which continues the
    /// numbering of identities. Says whether it is a new one.
    #[allow(dead_code)]
    pub fn change_or_renew(&mut self, params: &Params) -> bool {
        let plan = Plan::new(params, self.cpu.plan().frame()).unwrap();
        let changed = [self.cpu.change(&plan).unwrap(), self.cuda.change(&plan).unwrap()];
        assert_eq!(changed[0], changed[1], "{}", self.what);
        if !changed[0] {
            let next_id = self.cpu.next_id().unwrap();
            self.cpu = Engine::new(self.cpu.backend().clone(), plan.clone()).unwrap();
            self.cuda = Engine::new(self.cuda.backend().clone(), plan).unwrap();
            self.cpu.set_next_id(next_id).unwrap();
            self.cuda.set_next_id(next_id).unwrap();
        }
        self.what += &format!("; then {params:?}");
        !changed[0]
    }

    /// Segments and draws on a frame on both backends, and compares all that they give.
    pub fn compare(&mut self, buffer: &Buffer, drawing: &Drawing) {
        self.compare_for(buffer, EVERYTHING, drawing);
    }

    /// Compares a frame with some of the outputs; returns the label map.
    pub fn compare_for(&mut self, buffer: &Buffer, outputs: Outputs, drawing: &Drawing) -> Vec<u16> {
        let (info, g) = (buffer.info, buffer.info.geometry);
        let what = format!("{}: frame {}", self.what, self.frame);
        self.frame += 1;
        let (mut want, mut got) = (vec![0; g.pixels()], vec![0xfffe; g.pixels()]);
        let mut labels = Labels::new(g, &mut want, g.width() as usize).unwrap();
        self.cpu.segment(&buffer.frame(), &mut labels, outputs).unwrap();
        let mut planes = [buffer.planes.clone(), buffer.planes.clone()];
        let [drawn, drawn_on_cuda] = planes.each_mut().map(|planes| {
            FrameMut::new(info, planes.iter_mut().map(Vec::as_mut_slice), &buffer.strides).unwrap()
        });
        self.cpu.draw(&mut { drawn }, &labels, drawing).unwrap();
        let mut frame = self.staging.upload(&buffer.frame()).unwrap();
        let labels = Labels::new(g, &mut got, g.width() as usize).unwrap();
        self.cuda.segment(&frame, &mut Some(labels), outputs).unwrap();
        self.cuda.draw(&mut frame, &None, drawing).unwrap();
        self.staging.download(&mut { drawn_on_cuda }).unwrap();
        if let Some(at) = (0..want.len()).find(|&at| want[at] != got[at]) {
            let (x, y) = (at % g.width() as usize, at / g.width() as usize);
            let count = (0..want.len()).filter(|&at| want[at] != got[at]).count();
            let counts = [self.cpu.regions().count, self.cuda.regions().count];
            panic!(
                "{what}: {count} labels differ, the first at {x}, {y}: {} and {} of {counts:?}",
                want[at], got[at]
            );
        }
        assert_eq!(self.cpu.regions(), self.cuda.regions(), "{what}");
        assert!(planes[0] == planes[1], "{what} is drawn differently with {drawing:?}");
        assert_eq!(self.cpu.next_id().unwrap(), self.cuda.next_id().unwrap(), "{what}");
        want
    }
}

/// The frames of a clip, one after the other.
pub fn compare(cuda: &Cuda, params: &Params, clip: &[Buffer], drawing: &Drawing, what: &str) {
    let mut both = Both::new(cuda, params, clip[0].info, what);
    clip.iter().for_each(|buffer| both.compare(buffer, drawing));
}
