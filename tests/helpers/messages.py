# ruff: noqa: E501 (a message is quoted in one piece)
"""Messages as people paste them: those that the page of symptoms has, and those that it does not have.

The first have other numbers, names and paths than the page, or come with a traceback, or in part. Of the second most
were raised by the pinned PyTorch and NumPy; the others are quoted from public threads.
"""

TORCH = "/home/me/venv/lib/python3.11/site-packages/torch"
IN_A_NORM = f"""Traceback (most recent call last):
  File "/home/me/project/train.py", line 212, in <module>
    main()
  File "/home/me/project/train.py", line 187, in main
    loss = step(model, batch)
  File "/home/me/project/model.py", line 64, in forward
    x = x + self.attn(self.norm1(x), mask=mask)
  File "{TORCH}/nn/modules/module.py", line 1776, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
  File "{TORCH}/nn/modules/normalization.py", line 229, in forward
    return F.layer_norm(
  File "{TORCH}/nn/functional.py", line 2910, in layer_norm
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, torch.backends.cudnn.enabled)
"""
IN_A_STEP = f"""Traceback (most recent call last):
  File "/content/notebook.py", line 31, in <cell line: 5>
    loss.backward()
  File "{TORCH}/_tensor.py", line 626, in backward
    torch.autograd.backward(
  File "{TORCH}/autograd/graph.py", line 841, in _engine_run_backward
    return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
"""

#: A message, and the beginning of the heading of its entry.
THERE = {
    "RuntimeError: Given normalized_shape=[1024], expected input with shape [*, 1024], but got input of size[7, 320]": (
        "Given normalized_shape"
    ),
    IN_A_NORM + "RuntimeError: Given normalized_shape=[768], expected input with shape [*, 768], but got input of "
    "size[32, 197, 1024]": "Given normalized_shape",
    "Given normalized_shape=[96], expected input with shape [*, 96], but got input of size[16, 96, 56, 56]": (
        "Given normalized_shape"
    ),
    "RuntimeError: Expected weight to be of same shape as normalized_shape, but got weight of shape [64, 1, 512] and "
    "normalized_shape = [512]": "Expected weight to be of same shape",
    "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
    "normalized_shape = []": "Expected normalized_shape to be at least",
    "ValueError: operands could not be broadcast together with shapes (32,128) (32,)": "operands could not be",
    'Traceback (most recent call last):\n  File "C:\\Users\\me\\norm.py", line 8, in <module>\n    print(norm(x))\n'
    "ValueError: operands could not be broadcast together with shapes (2,3,8) (2,3) ": "operands could not be",
    "numpy.exceptions.AxisError: axis 3 is out of bounds for array of dimension 3": "axis 2 is out of bounds",
    "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)": "axis 2 is out of bounds",
    "RuntimeError: The size of tensor a (768) must match the size of tensor b (3072) at non-singleton dimension 2": (
        "The size of tensor a"
    ),
    IN_A_NORM.replace("F.layer_norm", "residual") + "RuntimeError: The size of tensor a (100) must match the size of "
    "tensor b (64) at non-singleton dimension 3": "The size of tensor a",
    "ValueError: num_channels (100) must be divisible by num_groups (32)": "num_channels",
    "ValueError: num_channels must be divisible by num_groups": "num_channels",
    "RuntimeError: Expected number of channels in input to be divisible by num_groups, but got input of shape "
    "[8, 50, 64] and num_groups=16": "Expected number of channels",
    "RuntimeError: running_mean should contain 197 elements not 768": "running_mean should contain",
    "ValueError: expected 2D or 3D input (got 1D input)": "expected 2D or 3D input",
    "ValueError: expected 4D input (got 2D input)": "expected 2D or 3D input",
    "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 256, 1, 1])": (
        "Expected more than 1 value per channel"
    ),
    "ValueError: Expected more than 1 spatial element when training, got input size torch.Size([16, 512, 1, 1])": (
        "Expected more than 1 spatial"
    ),
    "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans "
    "across two contiguous subspaces). Use .reshape(...) instead.": "view size is not compatible",
    "AssertionError: embed_dim must be divisible by num_heads": "embed_dim must be",
    "AssertionError: was expecting embedding dimension of 512, but got 768": "was expecting embedding",
    "TypeError: LayerNorm.__init__() got an unexpected keyword argument 'epsilon'": "LayerNorm.__init__()",
    "TypeError: RMSNorm.__init__() got an unexpected keyword argument 'bias'": "RMSNorm.__init__()",
    "TypeError: LayerNorm.__init__() got an unexpected keyword argument 'bias'": "RMSNorm.__init__()",
    "AttributeError: 'NoneType' object has no attribute 'zero_'": "'NoneType' object has no attribute 'zero_'",
    "TypeError: 'float' object is not iterable": "'float' object is not iterable",
    IN_A_NORM + "RuntimeError: mixed dtype (CPU): expect parameter to have scalar type of Float": "mixed dtype",
    "RuntimeError: expected scalar type Float but found Half": "mixed dtype",
    "RuntimeError: expected scalar type Double but found Float": "mixed dtype",
    "RuntimeError: mixed dtype (CPU): all inputs must share same datatype.": "mixed dtype (CPU): all inputs",
    "RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float": "mat1 and mat2",
    "NotImplementedError: \"rms_norm\" not implemented for 'Int'": '"rms_norm" not implemented',
    "numpy._core._exceptions._UFuncOutputCastingError: Cannot cast ufunc 'add' output from dtype('float32') to "
    "dtype('int64') with casting rule 'same_kind'": "Cannot cast ufunc",
    "AssertionError: only bool and floating types of src_key_padding_mask are supported": "only bool and floating",
    "RuntimeError: Tensor on device meta is not on the expected device cuda:0!": "Tensor on device meta",
    IN_A_STEP + "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [torch.cuda.FloatTensor [32, 197, 768]], which is output 0 of AddBackward0, is at version 4; expected "
    "version 3 instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True).": "one of the variables needed",
    "variables needed for gradient computation has been modified by an inplace operation": "one of the variables",
    "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.": "a leaf Variable",
    IN_A_STEP + "RuntimeError: grad can be implicitly created only for scalar outputs": "grad can be implicitly",
    IN_A_STEP + "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn": "element 0 of",
    "ValueError: optimizer got an empty parameter list": "optimizer got an empty",
    IN_A_STEP + "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors "
    "after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() "
    "or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you "
    "need to access saved tensors after calling backward.": "Trying to backward",
    "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.": "Can't call",
    f"{TORCH}/nn/modules/transformer.py:392: UserWarning: enable_nested_tensor is True, but self.use_nested_tensor is "
    "False because encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)\n"
    "  warnings.warn(": "enable_nested_tensor is True",
    f"{TORCH}/nn/functional.py:6044: UserWarning: Support for mismatched src_key_padding_mask and src_mask is "
    "deprecated. Use same type for both instead.\n  warnings.warn(": "Support for mismatched",
    "UserWarning: Mismatch dtype between input and weight: input dtype = c10::Half, weight dtype = float, Cannot "
    "dispatch to fused implementation. (Triggered internally at /pytorch/aten/src/ATen/native/layer_norm.cpp:344.)": (
        "Mismatch dtype between"
    ),
    "train.py:40: UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute won't be populated during autograd.backward().": "The .grad attribute",
    "UserWarning: std(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
    "(input numel divided by output numel).": "std(): degrees of freedom",
    "UserWarning: Input #1 requires gradient and is not a double precision floating point or complex.": "Input #0",
    "torch.autograd.gradcheck.GradcheckError: Jacobian mismatch for output 0 with respect to input 2,": "Input #0",
    "UserWarning: None of the inputs have requires_grad=True. Gradients will be None": "None of the inputs",
    f"{TORCH}/nn/modules/loss.py:616: UserWarning: Using a target size (torch.Size([64])) that is different to the "
    "input size (torch.Size([64, 1])). This will likely lead to incorrect results due to broadcasting. Please ensure "
    "they have the same size.": "Using a target size",
    "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
    "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.": "Detected call of",
    "UserWarning: Implicit dimension choice for softmax has been deprecated. Change the call to include dim=X as an "
    "argument.": "Implicit dimension choice",
    IN_A_STEP + "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.": "Function 'Sqrt",
    "norm.py:12: RuntimeWarning: invalid value encountered in divide\n  return (x - mean) / std": "RuntimeWarning: invalid "
    "value encountered in divide",
    "RuntimeWarning: invalid value encountered in sqrt": "RuntimeWarning: invalid value encountered in sqrt",
    "<stdin>:1: RuntimeWarning: overflow encountered in square": "RuntimeWarning: overflow",
    'RuntimeError: Error(s) in loading state_dict for BertModel:\n\tMissing key(s) in state_dict: "embeddings.LayerNorm'
    '.weight", "embeddings.LayerNorm.bias". \n\tUnexpected key(s) in state_dict: "embeddings.LayerNorm.gamma", '
    '"embeddings.LayerNorm.beta". ': "Missing key(s) in state_dict: ",
    'RuntimeError: Error(s) in loading state_dict for BatchNorm2d:\n\tMissing key(s) in state_dict: "running_mean", '
    '"running_var". ': 'Missing key(s) in state_dict: "running_mean"',
    "RuntimeError: Error(s) in loading state_dict for Attention:\n\tsize mismatch for q_norm.weight: copying a param "
    "with shape torch.Size([128]) from checkpoint, the shape in current model is torch.Size([4096]).": "size mismatch",
    "size mismatch for norm.weight: copying a param with shape torch.Size([768])": "size mismatch",
    'Unexpected key(s) in state_dict: "model.norm1.bias".': 'Unexpected key(s) in state_dict: "bias"',
    'Missing key(s) in state_dict: "h.0.ln_1.bias", "ln_f.bias".': 'Unexpected key(s) in state_dict: "bias"',
    "AssertionError: was expecting embedding dimension of 8, but got 9": "was expecting embedding",
    "RuntimeError: running_mean should contain 4 elements not 3": "running_mean should contain",
    "RuntimeError: Given normalized_shape=[8], expected input with shape [*8], but got input of size[2, 9]": "Given normalized_shape",
    "numpy.exceptions.AxisError: axis2: axis 1 is out of bounds for array of dimension 1": "axis 2 is out of bounds",
    "RuntimeError: The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0": "The size of tensor a",
    "ValueError: operands could not be broadcast together with shapes (2,3) (4,3)": "operands could not be",
    "numpy._core._exceptions._UFuncOutputCastingError: Cannot cast ufunc 'multiply' output from dtype('float64') to dtype('int64') with casting rule 'same_kind'": "Cannot cast ufunc",
    "ValueError: expected 3D or 4D input (got 2D input)": "expected 2D or 3D input",
    "RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Float": "mat1 and mat2",
    # of sharding, export and newer tensors
    "NotImplementedError: Cannot copy out of meta tensor; no data!": "Cannot copy out of meta",
    IN_A_NORM.replace("F.layer_norm", "t.to")
    + "NotImplementedError: Cannot copy out of meta tensor; no data! Please use "
    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device.": (
        "Cannot copy out of meta"
    ),
    "RuntimeError: FSDP parameters should be materialized from meta device before training, but the following were "
    "still on meta device: ['layers.0.attention.wq.weight', 'layers.0.attention_norm.weight', 'norm.weight']\nFor "
    "example, call module.to_empty(device) to materialize to device and call module.reset_parameters() on each module "
    "to initialize values.": "FSDP parameters should",
    "RuntimeError: aten.mm.default got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor "
    "before calling distributed operators!": "aten.",  # of another operation: both entries
    "[rank3]: RuntimeError: aten.embedding.default: got mixed torch.Tensor and DTensor, need to convert all "
    "torch.Tensor to DTensor before calling distributed operators!": "aten.",
    "RuntimeError: aten.native_layer_norm.default: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor "
    "to DTensor before calling distributed operators!": "aten.native_layer_norm",
    "RuntimeError: aten.mul.Tensor: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor "
    "before calling distributed operators!": "aten.native_layer_norm",
    "[rank0]: RuntimeError: aten.add.Tensor: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to "
    "DTensor before calling distributed operators!": "aten.",  # and the other: one word tells them apart
    "ValueError: Must flatten tensors with uniform dtype but got torch.float32 and torch.float16": "Must flatten",
    "AssertionError: FSDP expects uniform original parameter dtype but got {torch.float32, torch.bfloat16}": (
        "Must flatten"
    ),
    "W0716 01:10:47.676000 567101 torch/_dynamo/convert_frame.py:984] [0/8] torch._dynamo hit config.recompile_limit (8)"
    "\nW0716 01:10:47.676000 567101 torch/_dynamo/convert_frame.py:984] [0/8]    function: 'forward' "
    "(/app/model.py:64)": "torch._dynamo hit",
    "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with fullgraph=True. Excessive recompilations "
    "can degrade performance due to the compilation overhead of each recompilation. To monitor recompilations, enable "
    "TORCH_LOGS=recompiles. If recompilations are expected, consider increasing torch._dynamo.config.cache_size_limit "
    "to an appropriate value.": "torch._dynamo hit",
    "RuntimeError: to_padded_tensor: at least one constituent tensor should have non-zero numel": "to_padded_tensor",
    "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have "
    "different metadata than during the forward pass.\ntensor at position 5:\nsaved metadata: {'shape': "
    "torch.Size([64, 64]), 'dtype': torch.float32, 'device': device(type='cuda', index=0)}\nrecomputed metadata: "
    "{'shape': torch.Size([64, 64]), 'dtype': torch.bfloat16, 'device': device(type='cuda', index=0)}": (
        "torch.utils.checkpoint: Recomputed"
    ),
    "NotImplementedError: \"mul_cpu_reduced_float\" not implemented for 'Float8_e4m3fn'": "Promotion for Float8",
    "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on data-dependent expression "
    "u3 < 10 (unhinted: u3 < 10).  (Size-like symbols: none)": "Could not guard",
    "torch._dynamo.exc.Unsupported: Data-dependent branching\n  Explanation: Detected data-dependent branching (e.g. "
    "`if my_tensor.sum() > 0:`). Dynamo does not support tracing dynamic control flow.": "Could not guard",
    'torch._dynamo.exc.UserError: Constraints violated (batch)! For more information, run with TORCH_LOGS="+dynamic".\n'
    "  - You marked batch as dynamic but your code specialized it to be a constant (1). If you're using mark_dynamic, "
    "either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or "
    "Dim.AUTO.\nSuggested fixes:\n  batch = 1": "Constraints violated",
    "RuntimeError: Promotion for Float8 Types is not supported, attempted to promote Float8_e5m2 and BFloat16": (
        "Promotion for Float8"
    ),
    "NotImplementedError: \"add_stub\" not implemented for 'Float8_e4m3fn'": "Promotion for Float8",
    IN_A_NORM
    + "NotImplementedError: \"LayerNormKernelImpl\" not implemented for 'Float8_e4m3fn'": "Promotion for Float8",
    "RuntimeError: Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.": "Internal error: Nested",
    "RuntimeError: cannot call binary pointwise function mul.Tensor with inputs of shapes (16, j41, 768) and (16, j57, "
    "768)": "cannot call binary",
    "RuntimeError: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
    "moment.": "Only Tensors created",
    "RuntimeError: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
    "moment.  If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
    "see https://github.com/pytorch/pytorch/pull/103001": "Only Tensors created",
}

ABSENT = [
    # of the shapes and types of others than norms
    "TypeError: layer_norm(): argument 'eps' (position 5) must be float, not str",
    "layer_norm(): argument 'eps' must be float, not str",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x768 and 512x256)",
    "RuntimeError: Given groups=1, weight of size [8, 3, 3, 3], expected input[2, 4, 9, 9] to have 3 channels, but got "
    "4 channels instead",
    "IndexError: index out of range in self",
    "RuntimeError: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
    "got torch.FloatTensor instead (while checking arguments for embedding)",
    "IndexError: Target 7 is out of bounds.",
    "ValueError: Expected input batch_size (3) to match target batch_size (2).",
    "RuntimeError: Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number "
    "1 in the list.",
    "RuntimeError: stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [2, 4] at entry 1",
    "RuntimeError: shape '[4, 2]' is invalid for input of size 6",
    "RuntimeError: a Tensor with 3 elements cannot be converted to Scalar",
    "RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
    "RuntimeError: expected m1 and m2 to have the same dtype, but got: long int != float",
    "RuntimeError: index 5 is out of bounds for dimension 1 with size 3",
    "RuntimeError: The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 0.  "
    "Target sizes: [4, 3].  Tensor sizes: [2, 3]",
    "RuntimeError: permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
    "desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 3",
    "RuntimeError: einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
    "AssertionError: key shape torch.Size([2, 3, 8]) does not match value shape torch.Size([2, 4, 8])",
    "RuntimeError: The shape of the 2D attn_mask is torch.Size([5, 5]), but should be (3, 3).",
    "RuntimeError: Calculated padded input size per channel: (3 x 3). Kernel size: (7 x 7). Kernel size can't be "
    "greater than actual input size",
    "RuntimeError: mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
    "Got: Long",
    "RuntimeError: std and var only support floating point and complex dtypes",
    "NotImplementedError: \"softmax_lastdim_kernel_impl\" not implemented for 'Long'",
    IN_A_NORM + "RuntimeError: \"LayerNormKernelImpl\" not implemented for 'Half'",
    IN_A_NORM + "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
    "and cpu! (when checking argument for argument weight in method wrapper_CUDA__native_layer_norm)",
    IN_A_NORM + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "23.68 GiB of which 1.12 GiB is free.",
    # of objects and arguments
    "AttributeError: 'NoneType' object has no attribute 'shape'",
    "AttributeError: 'Linear' object has no attribute 'wieght'",
    "AttributeError: 'tuple' object has no attribute 'mean'",
    "AttributeError: 'RMSNorm' object has no attribute 'variance_epsilon'",
    "AttributeError: 'LayerNorm' object has no attribute 'scale'",
    "TypeError: 'NoneType' object is not callable",
    "TypeError: 'NoneType' object is not iterable",
    "TypeError: 'int' object is not iterable",
    "TypeError: Linear.__init__() got an unexpected keyword argument 'bais'",
    "TypeError: GPT2LMHeadModel.forward() got an unexpected keyword argument 'token_type_ids'",
    "TypeError: LayerNorm.__init__() missing 1 required positional argument: 'normalized_shape'",
    "NameError: name 'layer_norm' is not defined",
    "ModuleNotFoundError: No module named 'flash_attn'",
    # of checkpoints
    'RuntimeError: Error(s) in loading state_dict for Sequential:\n\tMissing key(s) in state_dict: "0.weight", "0.bias".',
    'RuntimeError: Error(s) in loading state_dict for Linear:\n\tUnexpected key(s) in state_dict: "scale".',
    "KeyError: 'sequential.2.input_layernorm.weight'",
    "Some weights of BertForSequenceClassification were not initialized from the model checkpoint at bert-base-cased "
    "and are newly initialized: ['classifier.bias', 'classifier.weight']",
    "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    # of autograd and optimisers
    "RuntimeError: can't retain_grad on Tensor that has requires_grad=False",
    "RuntimeError: Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
    "RuntimeError: only Tensors of floating point dtype can require gradients",
    IN_A_STEP + "RuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a "
    "shape of torch.Size([]).",
    "TypeError: optimizer can only optimize Tensors, but one of the params is int",
    "ValueError: Invalid learning rate: -1",
    "RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory "
    "location. Please clone() the tensor before performing the operation.",
    "TypeError: can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
    "first.",
    # of NumPy
    "ValueError: The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
    "IndexError: index 4 is out of bounds for axis 0 with size 3",
    "ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
    "(n?,k),(k,m?)->(n?,m?) (size 4 is different from 3)",
    "ValueError: all the input array dimensions except for the concatenation axis must match exactly, but along "
    "dimension 1, the array at index 0 has size 3 and the array at index 1 has size 4",
    "ValueError: cannot reshape array of size 6 into shape (4,2)",
    "ValueError: could not broadcast input array from shape (90,108,90,288) into shape (90,108,90,9)",
    "AttributeError: module 'numpy' has no attribute 'float'.",
    "RuntimeWarning: divide by zero encountered in log",
    "RuntimeWarning: invalid value encountered in log",
    "RuntimeWarning: overflow encountered in exp",
    "RuntimeWarning: Mean of empty slice",
    # of JAX, Flax and transformers
    "TypeError: dot_general requires contracting dimensions to have the same shape, got (1041,) and (1029,).",
    "ValueError: Incompatible shapes for broadcasting: shapes=[(2, 4), (2,)]",
    "jax.errors.ConcretizationTypeError: Abstract tracer value encountered where concrete value is expected: "
    "Traced<ShapedArray(int32[], weak_type=True)>with<DynamicJaxprTrace(level=0/1)>",
    "TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on traced array with shape "
    "bfloat16[1].",
    'flax.errors.ScopeParamShapeError: Inconsistent shapes between value and initializer for parameter "scale" in '
    '"/gn_root": (1, 1, 1, 64), (64,).',
    "ValueError: Attention mask should be of size (1, 1, 30, 30), but is torch.Size([1, 30, 30])",
    # and more of all of them
    "RuntimeError: index 4 is out of bounds for dimension 0 with size 3",
    "RuntimeError: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [9]",
    "TypeError: linear(): argument 'input' (position 1) must be Tensor, not numpy.ndarray",
    "TypeError: layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int",
    "NotImplementedError: \"LayerNormKernelImpl\" not implemented for 'ComplexFloat'",
    "RuntimeError: Trying to create tensor with negative dimension -1: [-1]",
    "TypeError: MultiheadAttention.forward() missing 2 required positional arguments: 'key' and 'value'",
    "RuntimeError: Only Tensors of floating point and complex dtype can require gradients",
    'NotImplementedError: Module [Module] is missing the required "forward" function',
    "AttributeError: cannot assign module before Module.__init__() call",
    "ValueError: can't optimize a non-leaf Tensor",
    "AttributeError: 'NoneType' object has no attribute 'sum'",
    "RuntimeError: The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.",
    "ValueError: shapes (2,3) and (2,3) not aligned: 3 (dim 1) != 2 (dim 0)",
    "TypeError: 'str' object cannot be interpreted as an integer",
    "ValueError: all input arrays must have the same shape",
    "TypeError: ufunc 'divide' not supported for the input types, and the inputs could not be safely coerced to any supported types according to the casting rule ''safe''",
    "IndexError: only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices",
    "ValueError: negative dimensions are not allowed",
    "TypeError: data type 'x' not understood",
    "numpy.linalg.LinAlgError: Matrix is not positive definite",
    "TypeError: ufunc 'sqrt' not supported for the input types, and the inputs could not be safely coerced to any supported types according to the casting rule ''safe''",
    "ValueError: cannot select an axis to squeeze out which has size not equal to one",
    "IndexError: pop from empty list",
    "KeyError: 'weight'",
    "TypeError: object of type 'int' has no len()",
    'TypeError: can only concatenate str (not "int") to str',
    "ValueError: invalid literal for int() with base 10: 'a'",
    "ValueError: expected sequence of length 2 at dim 1 (got 1)",
    "RuntimeError: expected target dtype to be Long or Byte, but got Float",
    "ValueError: dropout probability has to be between 0 and 1, but got 2",
    "RuntimeError: Expected weight to be a vector of size equal to the number of channels in input, but got weight of shape [4] and input of shape [2, 6, 5]",
    "TypeError: LayerNorm.__init__() got an unexpected keyword argument 'affine'",
    "RuntimeError: result type Float can't be cast to the desired output type Int",
    "RuntimeError: shape '[-1, 4]' is invalid for input of size 6",
    "RuntimeError: dot : expected both vectors to have same dtype, but found Half and Float",
    # of sharding, export and newer tensors
    "ValueError: Default process group has not been initialized, please make sure to call init_process_group.",
    "AttributeError: 'FSDPParam' object has no attribute 'param_dtype'",
    "RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::Float8_e4m3fn != float",
    "NotImplementedError: \"sum_cpu\" not implemented for 'Float8_e4m3fn'",
    "NotImplementedError: \"max_all\" not implemented for 'Float8_e4m3fn'",
    "RuntimeError: Expected both self and other to be nested, but got a nested self and non-nested other",
    "ValueError: NestedTensor layer_norm requires weight and bias",
    "NotImplementedError: Could not run 'aten::mean.dim' with arguments from the 'NestedTensorCPU' backend. This could be "
    "because the operator doesn't exist for this backend, or was omitted during the selective/custom build process",
    "ModuleNotFoundError: No module named 'onnxscript'",
    "torch.onnx.errors.UnsupportedOperatorError: Exporting the operator 'aten::rms_norm' to ONNX opset version 20 is not "
    "supported",
    "ValueError: Target module Qwen2RMSNorm() is not supported. Currently, only the following modules are supported: "
    "`torch.nn.Linear`, `torch.nn.Embedding`, `torch.nn.Conv2d`, `transformers.pytorch_utils.Conv1D`.",
    "ValueError: Following weights were not initialized from checkpoint: "
    "{'model.language_model.layers.15.self_attn.k_norm.weight'}",
    "RuntimeError: This layer norm doesn't support feature dim >= 64KB.",
    "RuntimeError: FlashAttention only support fp16 and bf16 data type",
    "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: A different number of tensors was saved during the "
    "original forward and recomputation.",
    "NotImplementedError: \"div_true_cpu\" not implemented for 'Float8_e4m3fn'",
    "ValueError: Must flatten tensors with uniform requires_grad when use_orig_params=False",
]
