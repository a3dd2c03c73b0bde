// SPDX-License-Identifier: MPL-2.0
//! An engine on the backend that was chosen at run time.

use crate::backend::Backend;
use crate::engine::Engine;
use crate::error::Result;
use crate::plan::Plan;

/// What an engine carries from frame to frame. [`Engine`] documents the calls.
pub trait Continuity {
    /// See [`Engine::plan`].
    fn plan(&self) -> &Plan;
    /// See [`Engine::change`].
    fn change(&mut self, plan: &Plan) -> Result<bool>;
    /// See [`Engine::reset`].
    fn reset(&mut self);
    /// See [`Engine::next_id`].
    fn next_id(&mut self) -> Result<u32>;
    /// See [`Engine::set_next_id`].
    fn set_next_id(&mut self, id: u32) -> Result<()>;
}

impl<B: Backend> Continuity for Engine<B> {
    fn plan(&self) -> &Plan {
        self.plan()
    }

    fn change(&mut self, plan: &Plan) -> Result<bool> {
        self.change(plan)
    }

    fn reset(&mut self) {
        self.reset();
    }

    fn next_id(&mut self) -> Result<u32> {
        self.next_id()
    }

    fn set_next_id(&mut self, id: u32) -> Result<()> {
        self.set_next_id(id)
    }
}

/// An engine on the CPU or on a device: an [`Engine`], or what a program wraps around one.
#[derive(Debug)]
pub enum AnyEngine<C, D> {
    /// On the CPU.
    Cpu(Box<C>),
    /// On a device.
    Device(Box<D>),
}

impl<C: Continuity + 'static, D: Continuity + 'static> AnyEngine<C, D> {
    fn get(&self) -> &dyn Continuity {
        match self {
            Self::Cpu(engine) => &**engine,
            Self::Device(engine) => &**engine,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Continuity {
        match self {
            Self::Cpu(engine) => &mut **engine,
            Self::Device(engine) => &mut **engine,
        }
    }
}

impl<C: Continuity + 'static, D: Continuity + 'static> Continuity for AnyEngine<C, D> {
    fn plan(&self) -> &Plan {
        self.get().plan()
    }

    fn change(&mut self, plan: &Plan) -> Result<bool> {
        self.get_mut().change(plan)
    }

    fn reset(&mut self) {
        self.get_mut().reset();
    }

    fn next_id(&mut self) -> Result<u32> {
        self.get_mut().next_id()
    }

    fn set_next_id(&mut self, id: u32) -> Result<()> {
        self.get_mut().set_next_id(id)
    }
}
