//! The state that one process keeps for its calls, and how it runs one.

use std::sync::Arc;

use crate::Op;
use crate::call::{Call, CallRequest, LARGE};
use crate::device::small::{self, InlineRequest};
use crate::device::{Device, Devices};
use crate::fault::Fault;
use crate::fork::ProcessMark;
use crate::mapped::{FillError, MappedFiles, SHORTEST_WRITE};
use crate::pool::{CopyMethod, WorkerPool};
use crate::settings::Settings;
use crate::transferred::Transferred;

/// The state that one process keeps for its calls. It is never freed.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) mark: ProcessMark,
    pub(crate) settings: Settings,
    pub(crate) devices: Devices,
    pub(crate) pool: WorkerPool,
    pub(crate) mapped: MappedFiles,
    /// This is a child of the process that made the transfer.
    pub(crate) forked: bool,
}

impl State {
    pub(crate) fn new(settings: &Settings, forked: bool) -> Self {
        Self {
            mark: ProcessMark::new(),
            devices: Devices::new(settings),
            pool: WorkerPool::new(settings),
            mapped: MappedFiles::new(settings),
            settings: settings.clone(),
            forked,
        }
    }

    /// Whether this state belongs to the calling process.
    pub(crate) fn is_here(&self) -> bool {
        self.mark.is_here()
    }

    /// Whether this is the state of a child of `fork(2)`.
    pub(crate) fn is_forked(&self) -> bool {
        self.forked
    }

    /// Runs one call to completion.
    pub(crate) fn run(&'static self, request: CallRequest) -> Result<Transferred, Fault> {
        self.run_by(request, true, WorkerPool::run)
    }

    /// Like [`State::run`], for a thread that already holds a permit.
    pub(crate) fn run_with_permit(
        &'static self,
        request: CallRequest,
    ) -> Result<Transferred, Fault> {
        self.run_by(request, false, WorkerPool::run_with_permit)
    }

    fn run_by(
        &'static self,
        request: CallRequest,
        sleeps: bool,
        run: impl FnOnce(&'static WorkerPool, &'static Devices, &Arc<Call>),
    ) -> Result<Transferred, Fault> {
        let Some(request) = self.fitting(request)? else {
            return Ok(Transferred::default());
        };
        let device = match request.location.device() {
            Some(index) => Some(self.devices.device(index)?),
            None => None,
        };
        if let Some(device) = device.filter(|_| request.op == Op::Write)
            && let Some(done) = self.fill_mapped(device, &request)
        {
            return done;
        }
        if let Some(device) = device.filter(|_| request.op == Op::Read) {
            let CallRequest { op, ref file, location, address, len, offset } = request;
            if let Ok(len) = usize::try_from(len) {
                let request = InlineRequest { op, file: &file.0, location, address, len, offset };
                if let Some(done) = self.read_mapped(device, &request) {
                    return done;
                }
            }
        }
        let bottleneck = request.file.0.bottleneck(request.op, request.len >= LARGE);
        let method = match request.location.device() {
            None => CopyMethod::Host,
            Some(index) if self.devices.device(index)?.uses_copy_engines() => {
                CopyMethod::CopyEngines
            }
            Some(_) => CopyMethod::Kernel,
        };
        let most = self.settings.max_piece() as u64;
        let (executors, piece) = self.pool.split(request.len, bottleneck, method, sleeps, most);
        let call = Arc::new(Call::new(request, executors, piece));
        run(&self.pool, &self.devices, &call);
        let done = call.outcome().map_err(|fault| match fault {
            Fault::File { errno: libc::EFAULT, .. } if self.forked => {
                Fault::Unreached { address: call.request().address }
            }
            fault => fault,
        })?;
        let CallRequest { op, ref file, offset, .. } = *call.request();
        let (file, bytes) = (&file.0, done.bytes as u64);
        match device {
            Some(device) if op == Op::Write => {
                self.mapped.observe_written(file, device, offset, bytes);
            }
            Some(device) if done.route.direct == 0 || file.is_in_memory() => {
                self.mapped.observe(file, device, offset, (bytes, 1));
            }
            _ => {}
        }
        Ok(done)
    }

    /// A write into pages that are all registered; `None` if they are not, or the file has lost one
    /// meanwhile: then `pwrite(2)` writes all of it.
    fn fill_mapped(
        &'static self,
        device: &'static Device,
        request: &CallRequest,
    ) -> Option<Result<Transferred, Fault>> {
        let CallRequest { ref file, location, address, len, offset, .. } = *request;
        let file = &file.0;
        if len < SHORTEST_WRITE || location.is_managed() {
            return None;
        }
        let range = self.mapped.find_written(file, device, offset, len)?;
        // SAFETY: the caller of the transfer promises its memory until the call is done.
        match unsafe { range.fill(file, address) } {
            Ok(_) if self.mapped.has_lost(&range) => {
                self.mapped.forget_written(file, &range);
                None
            }
            Ok(ends) => Some(Ok(Transferred::filled(range.filled(), ends))),
            Err(FillError::File(failed)) => Some(Err(file.fault(failed))),
            Err(FillError::Gpu) => {
                self.mapped.give_up_written(file);
                None
            }
        }
    }

    /// A read whose bytes are all mapped; `None` if they are not.
    pub(crate) fn read_mapped(
        &'static self,
        device: &'static Device,
        request: &InlineRequest<'_>,
    ) -> Option<Result<Transferred, Fault>> {
        let InlineRequest { op, file, offset, len, .. } = *request;
        if op == Op::Write {
            return None;
        }
        let range = self.mapped.find(file, device, offset, len)?;
        match small::read_mapped(device, request, &range)? {
            // With a file of which nothing is mapped it may succeed.
            Err(error) if !error.is_reset() => {
                drop(range);
                self.mapped.give_up(file);
                None
            }
            done => Some(done.map_err(Fault::Gpu)),
        }
    }

    /// Trims a request to what the file allows: `None` if nothing is left, an error if it begins
    /// beyond the largest offset, a shorter request if it ends beyond that or far beyond the end of
    /// the file.
    fn fitting(&self, mut request: CallRequest) -> Result<Option<CallRequest>, Fault> {
        if self.forked && request.location.device().is_some() {
            return Err(Fault::Forked);
        }
        let most = i64::MAX.cast_unsigned();
        let room = most.saturating_sub(request.offset);
        let call = if request.op == Op::Read { "pread" } else { "pwrite" };
        let outside = match request.op {
            Op::Read => request.offset > most,
            Op::Write => request.len > room,
        };
        if outside {
            let CallRequest { offset, len, file, .. } = request;
            let failed = crate::fault::FileFault { call, errno: libc::EINVAL, offset, len };
            return Err(file.0.fault(failed));
        }
        request.len = request.len.min(room);
        // One `fstat(2)` saves an empty read for each piece beyond the end. Files without a size
        // (of proc, of FUSE) report 0 and are read as requested.
        let chunk = self.settings.max_piece() as u64;
        if request.op == Op::Read && request.len > chunk {
            let size = request.file.0.size().filter(|size| *size > request.offset);
            if let Some(size) = size {
                request.len = request.len.min((size - request.offset).saturating_add(1));
            }
        }
        Ok((request.len > 0).then_some(request))
    }
}
