#include "hetseq/data/hdf5/hdf5_dataset.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr const char* prepare_it_anew = "prepare the file anew, or name the right files";
constexpr const char* take_values_along =
    "copy the values into the file itself, if you trust whoever made it";

// Names in a file may hold anything.
std::string printable(std::string name) {
    constexpr std::size_t most = 200;
    if (name.size() > most)
        name = name.substr(0, most) + "...";
    std::replace_if(
        name.begin(),
        name.end(),
        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; },
        '?');
    return name;
}

// HDF5 calls this before it opens the file that an external link names, on any component of a path.
herr_t refuse_link(const char*,
                   const char*,
                   const char* other_file,
                   const char*,
                   unsigned*,
                   hid_t,
                   void* refused) {
    *static_cast<std::string*>(refused) = other_file;
    return -1;
}

// Opening alone reads none of the values.
void check_values_are_inside(hid_t dataset, const std::string& place) {
    const Hdf5Properties created{HETSEQ_HDF5_TRY(H5Dget_create_plist(dataset))};
    if (H5Pget_layout(created.get()) == H5D_VIRTUAL)
        throw BadData(place + " is virtual",
                      "virtual datasets cannot be read in parallel",
                      "name the files that it is made of: they are read as one corpus");
    if (HETSEQ_HDF5_TRY(H5Pget_external_count(created.get())) == 0)
        return;
    char name[1024] = "";
    HETSEQ_HDF5_TRY(H5Pget_external(created.get(), 0, sizeof name - 1, name, nullptr, nullptr));
    throw BadData(place + " keeps its values in another file",
                  "external storage: " + printable(name),
                  take_values_along);
}

}  // namespace

Hdf5Dataset open_hdf5_dataset(hid_t file,
                              const std::string& path,
                              const std::string& name,
                              hid_t access) {
    const std::string place = path + ": dataset '" + name + "'";
    const Hdf5Properties guarded{
        HETSEQ_HDF5_TRY(access == H5P_DEFAULT ? H5Pcreate(H5P_DATASET_ACCESS) : H5Pcopy(access))};
    std::string other_file;
    HETSEQ_HDF5_TRY(H5Pset_elink_cb(guarded.get(), refuse_link, &other_file));
    H5O_info_t info{};
    if (H5Oget_info_by_name2(file, name.c_str(), &info, H5O_INFO_BASIC, guarded.get()) < 0) {
        const std::string reason = hdf5_error_message();
        if (!other_file.empty())
            throw BadData(place + " is a link to another file",
                          "external link: " + printable(other_file),
                          take_values_along);
        throw BadData(place + " cannot be opened", reason, prepare_it_anew);
    }
    if (info.type != H5O_TYPE_DATASET)
        throw BadData(path + ": '" + name + "' is not a dataset", "", prepare_it_anew);
    Hdf5Dataset dataset{H5Dopen2(file, name.c_str(), guarded.get())};
    if (!dataset)
        throw BadData(place + " cannot be opened", hdf5_error_message(), prepare_it_anew);
    check_values_are_inside(dataset.get(), place);
    return dataset;
}

}  // namespace hetseq
