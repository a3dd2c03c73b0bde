// SPDX-License-Identifier: MPL-2.0
//! Graphs of a frame's launches, made node by node.
//!
//! Capturing a stream would give the same graph, but `cuCtxSynchronize`, which `torch.cuda.synchronize` calls, fails in a
//! context that has a stream in capture, and ends the capture.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUgraphNode};
use cudarc::driver::{CudaStream, result};

use super::launch::{Arguments, Kernel, Shape, check, together, urgent};
use crate::error::Result;

const STAGE: &str = "graph";

/// `CUgraphEdgeData`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Edge {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

/// The later node may be set up while the earlier one runs, and waits by itself: `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`
/// from `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`.
const OVERLAPPING: Edge = Edge { from_port: 1, to_port: 0, kind: 1, reserved: [0; 5] };

/// `cuGraphAddDependencies_v2`, of CUDA 12.3, which the bindings for 12.0 lack.
pub(crate) type AddEdges = unsafe extern "C" fn(
    CUgraph,
    *const CUgraphNode,
    *const CUgraphNode,
    *const c_void,
    usize,
) -> sys::CUresult;

/// The driver's handle of a graph that launches are added to.
struct Nodes(CUgraph);

impl Drop for Nodes {
    fn drop(&mut self) {
        // SAFETY: `cuGraphCreate` has made it, and nothing else destroys it. What was instantiated from it is a copy.
        let _ = unsafe { result::graph::destroy(self.0) };
    }
}

/// A graph in the making: launches follow each other, but for those on the branch.
pub(crate) struct Recording {
    nodes: Nodes,
    /// Lets nodes overlap, on a device that does.
    add_edges: Option<AddEdges>,
    /// The last launch that is not on the branch.
    last: Option<CUgraphNode>,
    /// The last launch on the branch, until [`Recording::join`].
    last_beside: Option<CUgraphNode>,
    is_beside: bool,
    /// True if the next launch also waits for the branch.
    joins: bool,
}

// SAFETY: handles of the driver, which any thread may use, one at a time: only `&mut self` reaches them.
unsafe impl Send for Recording {}

impl Recording {
    /// Begins a graph, with the device's [`AddEdges`]. Launches that are added must be of the context that is current then.
    pub fn new(add_edges: Option<AddEdges>) -> Result<Self> {
        let mut graph = ptr::null_mut();
        // SAFETY: writes a handle to where it is told; there are no flags.
        check(STAGE, unsafe { sys::cuGraphCreate(&mut graph, 0) }.result())?;
        let nodes = Nodes(graph);
        Ok(Self { nodes, add_edges, last: None, last_beside: None, is_beside: false, joins: false })
    }

    /// Adds a launch.
    ///
    /// # Safety
    /// Every device address among the arguments is valid for what the kernel does there whenever the graph is launched.
    pub unsafe fn add<A>(
        &mut self,
        kernel: &Kernel<A>,
        shape: Shape,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        let (function, stage, shared) = kernel.node();
        let mut args = kernel.pointers(&shape.frames, args)?;
        let before = match self.is_beside {
            true => [self.last_beside.or(self.last), None],
            false => [self.last, self.last_beside.filter(|_| self.joins)],
        };
        let before: Vec<_> = before.into_iter().flatten().collect();
        let params = sys::CUDA_KERNEL_NODE_PARAMS {
            func: function,
            gridDimX: shape.grid.0,
            gridDimY: shape.grid.1,
            gridDimZ: shape.frames.count,
            blockDimX: shape.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            kernelParams: args.as_mut().as_mut_ptr(),
            extra: ptr::null_mut(),
            kern: ptr::null_mut(),
            ctx: ptr::null_mut(),
        };
        let mut node = ptr::null_mut();
        let edges = self.add_edges.filter(|_| !before.is_empty());
        let others = if edges.is_some() { &[] } else { before.as_slice() };
        // SAFETY: the graph is ours, and so are the nodes before; `A` are the kernel's parameters, says who made it, and the driver
        // copies them.
        let added = unsafe {
            sys::cuGraphAddKernelNode_v2(&mut node, self.nodes.0, others.as_ptr(), others.len(), &params)
        };
        check(stage, added.result())?;
        if let Some(add_edges) = edges {
            let (nodes, all) = (vec![node; before.len()], vec![OVERLAPPING; before.len()]);
            // SAFETY: `Device` has looked the function up by its name, and `Edge` is the driver's struct; all nodes are of this graph.
            let added = unsafe {
                add_edges(self.nodes.0, before.as_ptr(), nodes.as_ptr(), all.as_ptr().cast(), before.len())
            };
            check(stage, added.result())?;
        }
        if shape.together {
            // SAFETY: the node is a kernel's, and the value that of this attribute.
            unsafe { set(stage, node, together())? };
        }
        if self.is_beside {
            // Launches on the branch are small and depend on each other: behind the blocks of a large one they would finish after it.
            // SAFETY: as above.
            unsafe { set(stage, node, urgent())? };
            self.last_beside = Some(node);
        } else {
            self.last = Some(node);
            if std::mem::take(&mut self.joins) {
                self.last_beside = None;
            }
        }
        Ok(())
    }

    /// Adds further launches to the branch, which goes off here, until [`Recording::end_beside`].
    pub fn begin_beside(&mut self) {
        self.is_beside = true;
    }

    /// Adds further launches where they were added before.
    pub fn end_beside(&mut self) {
        self.is_beside = false;
    }

    /// Returns true if the next launch will be parallel to those on the branch.
    pub fn is_parallel(&self) -> bool {
        !self.is_beside && self.last_beside.is_some() && !self.joins
    }

    /// Makes the next launch wait for the branch.
    pub fn join(&mut self) {
        self.joins = self.last_beside.is_some();
    }

    /// Ends the recording.
    pub fn finish(self) -> Result<Graph> {
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
        let mut exec = ptr::null_mut();
        // SAFETY: the graph is whole; writes a handle to where it is told.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, self.nodes.0, flags.0.into()) };
        check(STAGE, made.result())?;
        Ok(Graph(exec))
    }
}

/// Sets an attribute of a node.
///
/// # Safety
/// The node is a kernel's.
unsafe fn set(stage: &'static str, node: CUgraphNode, attribute: sys::CUlaunchAttribute) -> Result<()> {
    // SAFETY: the caller's node; an attribute carries the value that its name asks for.
    let set = unsafe { sys::cuGraphKernelNodeSetAttribute(node, attribute.id, &attribute.value) };
    check(stage, set.result())
}

/// A graph that can be launched.
pub(crate) struct Graph(CUgraphExec);

// SAFETY: a handle of the driver, which any thread may use, one at a time: what launches it says so.
unsafe impl Send for Graph {}

impl Graph {
    /// Puts all launches on the stream.
    ///
    /// # Safety
    /// As [`Recording::add`], until the stream has passed. No other thread launches this graph meanwhile.
    pub unsafe fn launch(&self, stream: &CudaStream) -> Result<()> {
        // SAFETY: the graph is whole and of the stream's context; the caller keeps the memory.
        check(STAGE, unsafe { result::graph::launch(self.0, stream.cu_stream()) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: `finish` has made it, and nothing else destroys it.
        let _ = unsafe { result::graph::exec_destroy(self.0) };
    }
}
