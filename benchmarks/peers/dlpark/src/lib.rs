//! dlpark as a peer, over PyO3: a function that takes three tensors, an import into an object of our own, and an object that exports.

use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor};
use dlpark::metadata::Fixed;
use dlpark::python::{
    export_dlpack, from_dlpack, install_exchange_api, DlpackExchangeProducer, DlpackExporter,
    ExportRequest, ImportedDlpack,
};
use dlpark::{DlpackElement, DlpackFlags, Managed, ManagedTensorBase};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::sync::Arc;

const FLOAT: DLDataType = f32::DTYPE;

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyBufferError::new_err(error.to_string())
}

/// A tensor of somebody else.
#[pyclass(frozen)]
struct Taken(ImportedDlpack);

// The deleter of a managed tensor may be called on any thread.
unsafe impl Send for Taken {}
unsafe impl Sync for Taken {}

#[pymethods]
impl Taken {
    fn data_ptr(&self) -> PyResult<usize> {
        Ok(self.0.validate().map_err(refused)?.data_ptr() as usize)
    }

    fn tolist(&self) -> PyResult<Vec<Vec<f32>>> {
        let tensor = self.0.validate().map_err(refused)?;
        let width = tensor.shape()[1] as usize;
        let values = unsafe {
            std::slice::from_raw_parts(tensor.data_ptr().cast::<f32>(), tensor.num_elements())
        };
        Ok(values.chunks(width).map(<[f32]>::to_vec).collect())
    }
}

/// Twelve float32 numbers, 3 x 4, in memory of our own.
#[pyclass(frozen)]
struct Made {
    data: Arc<[f32; 12]>,
    shape: [i64; 2],
    strides: [i64; 2],
}

impl Made {
    fn managed<M: ManagedTensorBase>(&self) -> PyResult<Managed<M>> {
        let prepared = Fixed::new(self.shape, self.strides)
            .prepare_as::<M>()
            .map_err(refused)?;
        let mut made = prepared.initialize(Arc::clone(&self.data));
        made.set_data(self.data.as_ptr() as *mut c_void);
        made.set_dtype(FLOAT);
        made.set_device(DLDevice::CPU);
        Ok(unsafe { made.finish() })
    }
}

impl DlpackExporter for Made {
    fn device(&self) -> DLDevice {
        DLDevice::CPU
    }

    fn flags(&self) -> DlpackFlags {
        DlpackFlags::empty()
    }

    fn prepare_export(&self, _py: Python<'_>, _request: &ExportRequest<'_>) -> PyResult<()> {
        Ok(())
    }

    fn export_legacy(&self, _py: Python<'_>) -> PyResult<Managed<DLManagedTensor>> {
        self.managed()
    }

    fn export_versioned(&self, _py: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.managed()
    }
}

unsafe impl DlpackExchangeProducer for Made {
    const HAS_DLTENSOR_VIEW: bool = true;

    fn managed_tensor_no_sync(
        &self,
        _py: Python<'_>,
    ) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.managed()
    }

    fn tensor_view_no_sync(&self, _py: Python<'_>) -> PyResult<DLTensor> {
        Ok(DLTensor {
            data: self.data.as_ptr() as *mut c_void,
            device: DLDevice::CPU,
            ndim: 2,
            dtype: FLOAT,
            shape: self.shape.as_ptr().cast_mut(),
            strides: self.strides.as_ptr().cast_mut(),
            byte_offset: 0,
        })
    }

    fn current_work_stream(_py: Python<'_>, _device: DLDevice) -> PyResult<*mut c_void> {
        Ok(std::ptr::null_mut())
    }
}

#[pymethods]
impl Made {
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        export_dlpack(
            self,
            py,
            ExportRequest::parse(stream, max_version, dl_device, copy)?,
        )
    }

    fn __dlpack_device__(&self) -> (u32, i32) {
        (1, 0)
    }

    fn data_ptr(&self) -> usize {
        self.data.as_ptr() as usize
    }
}

#[pyfunction]
fn take(x: &Bound<'_, PyAny>) -> PyResult<Taken> {
    Ok(Taken(from_dlpack(x.as_borrowed(), None, None)?))
}

#[pyfunction]
fn take3(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>, c: &Bound<'_, PyAny>) -> PyResult<()> {
    for x in [a, b, c] {
        let tensor = from_dlpack(x.as_borrowed(), None, None)?;
        std::hint::black_box(tensor.validate().map_err(refused)?.data_ptr());
    }
    Ok(())
}

#[pyfunction]
fn make() -> Made {
    Made {
        data: Arc::new(std::array::from_fn(|k| k as f32)),
        shape: [3, 4],
        strides: [4, 1],
    }
}

#[pymodule]
fn dlpark_peer(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Taken>()?;
    module.add_class::<Made>()?;
    install_exchange_api::<Made>(module.py())?;
    module.add_function(wrap_pyfunction!(take, module)?)?;
    module.add_function(wrap_pyfunction!(take3, module)?)?;
    module.add_function(wrap_pyfunction!(make, module)?)
}
