// SPDX-License-Identifier: MPL-2.0
//! Work that the threads of a pool share: rayon's iterators. WebAssembly without shared memory has one thread, and there the same names
//! are the standard library's iterators, since rayon's would be half of the code and share out nothing.

#[cfg(any(not(target_family = "wasm"), target_feature = "atomics"))]
pub(crate) use rayon::{iter, join, prelude};

#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
pub(crate) use given::Pool;
#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
pub(crate) use one_thread::{Pool, iter, join, prelude};
#[cfg(not(target_family = "wasm"))]
pub(crate) use threads::Pool;

#[cfg(not(target_family = "wasm"))]
mod threads {
    use std::sync::Arc;

    use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

    /// Threads that clones share.
    #[derive(Clone)]
    pub(crate) struct Pool(Arc<ThreadPool>);

    impl Pool {
        /// Starts so many threads; 0 starts one per core.
        pub fn start(threads: usize) -> Result<Self, ThreadPoolBuildError> {
            let builder = ThreadPoolBuilder::new().num_threads(threads);
            builder.thread_name(|i| format!("superpixel{i}")).build().map(|pool| Self(Arc::new(pool)))
        }

        /// How many there are.
        pub fn threads(&self) -> usize {
            self.0.current_num_threads()
        }

        /// Runs work whose iterators use the threads.
        pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
            self.0.install(work)
        }
    }
}

#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
mod given {
    use std::convert::Infallible;

    /// The threads of rayon's global pool. Only the page can start them, as workers; where it has not, that pool is the calling thread.
    #[derive(Clone)]
    pub(crate) struct Pool;

    impl Pool {
        /// Starts none, whatever is asked for.
        pub fn start(_: usize) -> Result<Self, Infallible> {
            Ok(Self)
        }

        /// How many there are.
        pub fn threads(&self) -> usize {
            rayon::current_num_threads()
        }

        /// Runs work on the threads.
        pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
            rayon::scope(|_| work())
        }
    }
}

#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
mod one_thread {
    use std::convert::Infallible;

    /// The calling thread.
    #[derive(Clone)]
    pub(crate) struct Pool;

    impl Pool {
        /// Starts none, whatever is asked for.
        pub fn start(_: usize) -> Result<Self, Infallible> {
            Ok(Self)
        }

        /// The calling one.
        pub fn threads(&self) -> usize {
            1
        }

        /// Runs work.
        pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
            work()
        }
    }

    pub(crate) mod iter {
        pub use std::iter::repeat_n;

        /// One of two iterators over the same items.
        pub enum Either<L, R> {
            Left(L),
            Right(R),
        }

        impl<L: Iterator, R: Iterator<Item = L::Item>> Iterator for Either<L, R> {
            type Item = L::Item;

            #[inline]
            fn next(&mut self) -> Option<L::Item> {
                match self {
                    Self::Left(one) => one.next(),
                    Self::Right(other) => other.next(),
                }
            }
        }
    }

    pub(crate) mod prelude {
        use std::ops::Range;
        use std::slice::{Chunks, ChunksExactMut, ChunksMut, Iter, IterMut};

        /// What rayon's iterators have beside the methods of the standard library.
        pub trait ParallelIterator: Iterator + Sized {
            /// The items as one, or none of no items.
            fn reduce_with(
                self,
                add: impl FnMut(Self::Item, Self::Item) -> Self::Item,
            ) -> Option<Self::Item> {
                self.reduce(add)
            }
        }

        impl<I: Iterator> ParallelIterator for I {}

        /// Iterators whose items are counted.
        pub trait IndexedParallelIterator: ParallelIterator {
            /// One thread has them all.
            fn with_min_len(self, _: usize) -> Self {
                self
            }
        }

        impl<I: Iterator> IndexedParallelIterator for I {}

        /// Ranges.
        pub trait IntoParallelIterator {
            /// The iterator.
            type Iter: Iterator;

            /// The numbers of the range.
            fn into_par_iter(self) -> Self::Iter;
        }

        impl IntoParallelIterator for Range<usize> {
            type Iter = Self;

            fn into_par_iter(self) -> Self {
                self
            }
        }

        /// Slices, by items and by parts.
        pub trait ParallelSlice<T> {
            /// Items.
            fn par_iter(&self) -> Iter<'_, T>;
            /// Items to change.
            fn par_iter_mut(&mut self) -> IterMut<'_, T>;
            /// Parts of `size` items, of which the last may have fewer.
            fn par_chunks(&self, size: usize) -> Chunks<'_, T>;
            /// Such parts to change.
            fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T>;
            /// Parts of exactly `size` items.
            fn par_chunks_exact_mut(&mut self, size: usize) -> ChunksExactMut<'_, T>;
        }

        impl<T> ParallelSlice<T> for [T] {
            fn par_iter(&self) -> Iter<'_, T> {
                self.iter()
            }

            fn par_iter_mut(&mut self) -> IterMut<'_, T> {
                self.iter_mut()
            }

            fn par_chunks(&self, size: usize) -> Chunks<'_, T> {
                self.chunks(size)
            }

            fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T> {
                self.chunks_mut(size)
            }

            fn par_chunks_exact_mut(&mut self, size: usize) -> ChunksExactMut<'_, T> {
                self.chunks_exact_mut(size)
            }
        }
    }

    /// Calls both, one after the other.
    pub(crate) fn join<A, B>(one: impl FnOnce() -> A, other: impl FnOnce() -> B) -> (A, B) {
        (one(), other())
    }
}
