// SPDX-License-Identifier: MPL-2.0
// A libnvcuvid.so.1 that decodes nothing: GStreamer 1.22 offers its CUDA upload and download only where it finds one.
#define NOT_HERE(name) extern "C" __attribute__((visibility("default"))) int name() { return 801; }
NOT_HERE(cuvidCtxLock)
NOT_HERE(cuvidCtxLockCreate)
NOT_HERE(cuvidCtxLockDestroy)
NOT_HERE(cuvidCtxUnlock)
NOT_HERE(cuvidCreateDecoder)
NOT_HERE(cuvidCreateVideoParser)
NOT_HERE(cuvidDecodePicture)
NOT_HERE(cuvidDestroyDecoder)
NOT_HERE(cuvidDestroyVideoParser)
NOT_HERE(cuvidGetDecoderCaps)
NOT_HERE(cuvidMapVideoFrame)
NOT_HERE(cuvidMapVideoFrame64)
NOT_HERE(cuvidParseVideoData)
NOT_HERE(cuvidUnmapVideoFrame)
NOT_HERE(cuvidUnmapVideoFrame64)
