//! softgpu
