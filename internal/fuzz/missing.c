/* The functions of Python that nothing calls which is fuzzed. Declared without their types, which python_abi.h alone knows. */
#include <stdio.h>
#include <stdlib.h>

#define MISSING(name)                                           \
    void name(void);                                            \
    void name(void)                                             \
    {                                                           \
        fputs(#name " is missing in internal/fuzz\n", stderr); \
        abort();                                                \
    }

MISSING(dlf_go_call_function)
MISSING(PyCFunction_NewEx)
MISSING(PySequence_Tuple)
MISSING(PyUnicode_DecodeUTF8)
MISSING(PyBytes_FromStringAndSize)
MISSING(PyType_GetSlot)
MISSING(PyType_GenericAlloc)
MISSING(PyObject_ClearWeakRefs)
MISSING(PyObject_GetAttr)
MISSING(PyObject_GetAttrString)
MISSING(PyObject_SetAttrString)
MISSING(PyObject_Call)
MISSING(PyObject_CallNoArgs)
MISSING(PyObject_CallFunctionObjArgs)
MISSING(PyObject_IsTrue)
MISSING(PyObject_IsInstance)
MISSING(PyObject_CheckBuffer)
MISSING(PyNumber_Float)
MISSING(PySequence_Fast)
MISSING(PySequence_Size)
MISSING(PySequence_GetItem)
MISSING(PyUnicode_FromString)
MISSING(PyUnicode_CompareWithASCIIString)
MISSING(PyUnicode_AsUTF8AndSize)
MISSING(PyLong_FromVoidPtr)
MISSING(PyLong_AsUnsignedLongLong)
MISSING(PyFloat_AsDouble)
MISSING(PyComplex_RealAsDouble)
MISSING(PyComplex_ImagAsDouble)
MISSING(PyDict_New)
MISSING(PyDict_SetItemString)
MISSING(PyDict_GetItemString)
MISSING(PyMapping_GetItemString)
MISSING(PyDict_SetItem)
MISSING(PyDict_GetItemWithError)
MISSING(PyDict_Size)
MISSING(PyDict_Next)
MISSING(PyCapsule_IsValid)
MISSING(PyErr_WriteUnraisable)
MISSING(PyModuleDef_Init)
MISSING(PyModule_AddObjectRef)
MISSING(PyImport_ImportModule)
MISSING(PyImport_GetModule)
MISSING(PyEval_SaveThread)
MISSING(PyEval_RestoreThread)
MISSING(Py_AddPendingCall)
MISSING(PyInterpreterState_GetID)
